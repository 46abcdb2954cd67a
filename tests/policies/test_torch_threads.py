from types import SimpleNamespace

from policyfuzz.policies.torch import one_thread


def fake_torch(threads):
    calls = []
    return SimpleNamespace(get_num_threads=lambda: threads, set_num_threads=calls.append, calls=calls)


def test_one_thread_is_asked_for_and_given_back():
    torch = fake_torch(4)
    with one_thread(torch):
        assert torch.calls == [1]
    assert torch.calls == [1, 4]


def test_one_thread_is_asked_for_also_where_there_seems_to_be_one():
    """A limit set from outside makes torch say one, and still use more: that cost a factor of eight."""
    torch = fake_torch(1)
    with one_thread(torch):
        pass
    assert torch.calls == [1]
