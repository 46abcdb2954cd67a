import pytest

#: Checks that run whole campaigns: no unit tests, whichever target they are about.
CAMPAIGN_CHECKS = ("campaign_repeats", "interrupted_campaign_ends_the_same", "findings_are_valid_and_replay")


@pytest.hookimpl(tryfirst=True)  # before tests are selected by their marks
def pytest_collection_modifyitems(items):
    names = {f"test[{check}]" for check in CAMPAIGN_CHECKS}
    for item in items:
        if item.name in names:
            item.add_marker(pytest.mark.slow)
