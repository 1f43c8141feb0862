import pytest
import torch

from pres.errors import OptionError
from pres.nn.dropout import Dropout


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_a_share_is_dropped_and_the_mean_stays(p: float) -> None:
    torch.manual_seed(0)
    found = Dropout(p)(torch.ones(401, 997))
    assert float((found == 0).float().mean()) == pytest.approx(p, abs=0.004)
    assert float(found.mean()) == pytest.approx(1, abs=0.02)
    kept = found[found != 0]
    assert torch.allclose(kept, torch.full_like(kept, 1 / (1 - p)), rtol=1e-3)
    columns, rows = (found == 0).float().mean(0), (found == 0).float().mean(1)
    assert float(columns.std()) < 0.04 and float(rows.std()) < 0.03  # no value is favoured


def test_the_same_seed_drops_the_same_and_another_draw_others() -> None:
    layer, values = Dropout(0.3), torch.ones(13, 7)
    torch.manual_seed(5)
    first, second = layer(values), layer(values)
    torch.manual_seed(5)
    assert torch.equal(layer(values), first) and not torch.equal(first, second)


def test_nothing_is_dropped_in_evaluation_or_at_zero() -> None:
    values = torch.randn(5, 3)
    assert Dropout(0.9).eval()(values) is values and Dropout(0.0)(values) is values
    assert bool(Dropout(0.999_999)(values).isfinite().all())
    with pytest.raises(OptionError, match="below 1"):
        Dropout(1.0)
