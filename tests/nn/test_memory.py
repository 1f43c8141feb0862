import torch

from pres.nn import Memory


def memory(slots: int = 1) -> Memory:
    return Memory(num_nodes=5, dim=2, feature_dim=1, slots=slots, start=torch.tensor(10))


def write(state: Memory, node: int, value: float, t: int) -> None:
    at = torch.tensor([node])
    state.write_mail(at, torch.full((1, 5), value), torch.tensor([t]), torch.tensor([t]))


def test_at_first_there_is_no_mail_and_everything_is_of_the_start() -> None:
    state = memory(3)
    assert not state.mails_received.any() and not state.mail.any()
    assert state.last_update.tolist() == [10] * 5
    assert state.last_update.dtype == torch.int64  # times keep their type


def test_a_mailbox_keeps_the_newest_mails() -> None:
    state = memory(3)
    for t in range(11, 16):
        write(state, 2, float(t), t)
    write(state, 3, 7.0, 20)
    mail = state.read_mail(torch.tensor([2, 3]))
    assert mail.slots.mask.tolist() == [[True, True, True], [True, False, False]]
    assert sorted(mail.t[:3].tolist()) == [13, 14, 15] == sorted(mail.event[:3].tolist())
    assert sorted(mail.content.copied()[:3, 0].tolist()) == [13.0, 14.0, 15.0]
    assert mail.content.copied()[3, 0] == 7 and mail.t[3] == 20 == mail.event[3]
    assert mail.newest_t.tolist() == [15, 20]


def test_a_single_mail_takes_the_place_of_the_one_before() -> None:
    state = memory()
    for node, t in ((4, 11), (1, 12), (4, 13)):
        write(state, node, float(t), t)
    mail = state.read_mail(torch.tensor([1, 4]))
    assert mail.slots.mask.tolist() == [[True], [True]] and mail.slots.query.tolist() == [0, 1]
    assert mail.t.tolist() == mail.newest_t.tolist() == mail.event.tolist() == [12, 13]
    assert mail.content.copied()[:, 0].tolist() == [12.0, 13.0]


def test_reset_forgets_and_restore_brings_back() -> None:
    state = memory()
    write(state, 1, 3.0, 12)
    state.write(torch.tensor([1]), torch.ones(1, 2), torch.tensor([12]))
    kept = state.snapshot()
    write(state, 1, 4.0, 13)
    state.write(torch.tensor([0, 1]), torch.full((2, 2), 9.0), torch.tensor([13, 13]))
    state.reset()
    fresh = memory()
    for name, buffer in state.named_buffers():
        assert torch.equal(buffer, dict(fresh.named_buffers())[name]), name
    state.restore(kept)
    for name, buffer in state.named_buffers():
        assert torch.equal(buffer, kept[name]), name
    assert state.memory[1].tolist() == [1.0, 1.0] and state.last_update[1] == 12


def test_a_snapshot_is_a_copy() -> None:
    state = memory()
    kept = state.snapshot()
    state.write(torch.tensor([0]), torch.ones(1, 2), torch.tensor([12]))
    assert kept["memory"][0].tolist() == [0.0, 0.0]


def test_what_is_written_carries_no_gradient() -> None:
    state = memory()
    value = torch.ones(1, 2, requires_grad=True)
    state.write(torch.tensor([0]), value * 2, torch.tensor([12]))
    assert not state.memory.requires_grad
