"""The reviewer: evidence, checks by kind of artifact, and the decision on what they find."""
