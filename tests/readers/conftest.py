import pytest

from benchmarks.readers.corpus import make_corpus


@pytest.fixture(scope="session")
def corpus(tmp_path_factory):
    """Valid files of every kind that we read."""
    return make_corpus(tmp_path_factory.mktemp("readers") / "corpus")
