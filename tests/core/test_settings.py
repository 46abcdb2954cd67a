from policyfuzz import Budget
from policyfuzz.store.records import Progress


def test_share_is_that_of_the_nearest_limit():
    done = Progress(seconds=10.0, executions=500, findings=1)
    assert Budget(seconds=100.0, executions=1000).share_spent(done) == 0.5
    assert Budget(findings=1).share_spent(done) == 1.0
    assert Budget(seconds=5.0).share_spent(done) == 1.0
    assert Budget().share_spent(done) is None
