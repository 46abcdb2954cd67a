"""Runtime monitors: plain arrays that say how close a policy is to a crash, loaded without the search."""
