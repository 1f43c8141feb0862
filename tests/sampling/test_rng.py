import torch

from pres.sampling.rng import below, derived, uniform


def splitmix(z: int) -> int:
    mask = (1 << 64) - 1
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
    return z ^ (z >> 31)


def test_draws_equal_unsigned_integer_arithmetic() -> None:
    mask = (1 << 64) - 1
    for seed in (0, 1, -1, 2**63, 12345678901234567890):
        for a in (0, 1, 7, 2**40):
            for b in (0, 3):
                state = seed & mask
                for counter in (a, b):
                    state = splitmix((state + (counter + 1) * 0x9E3779B97F4A7C15) & mask)
                drawn = uniform(seed, torch.tensor([a]), torch.tensor([b]))
                assert drawn.tolist() == [(state >> 11) * 2.0**-53]


def test_draws_are_uniform_and_uncorrelated() -> None:
    n = 200_000
    u = uniform(3, torch.arange(n))
    assert float(u.min()) >= 0 and float(u.max()) < 1
    counts = torch.histc(u, bins=50, min=0, max=1)
    assert float(((counts - n / 50) ** 2 / (n / 50)).sum()) < 85.4  # 0.999 quantile at 49 df
    v = uniform(3, torch.arange(n), torch.tensor(1))
    assert abs(float(torch.corrcoef(torch.stack([u, v]))[0, 1])) < 0.01
    assert abs(float(torch.corrcoef(torch.stack([u[1:], u[:-1]]))[0, 1])) < 0.01


def test_below_never_reaches_its_limit() -> None:
    almost_one = torch.tensor([1 - 2**-53, 0.0, 0.5], dtype=torch.float64)
    assert below(torch.tensor([2**53, 5, 0]), almost_one).tolist() == [2**53 - 1, 0, 0]


def test_derived_seeds_are_all_different() -> None:
    seeds = [derived(seed, counter) for seed in range(-3, 50) for counter in range(5)]
    assert len({*seeds, *range(-3, 55)}) == len(seeds) + 58


def test_a_derived_seed_is_what_numbers_are_made_from() -> None:
    for seed in (0, -1, 2**63, 12345678901234567890):
        for counter in (0, 1, 2**40):
            bits = derived(seed, counter) % (1 << 64) >> 11
            assert uniform(seed, torch.tensor([counter])).tolist() == [bits * 2.0**-53]
