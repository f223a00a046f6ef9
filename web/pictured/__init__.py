"""What is on the pictures of the page: a small suite, two agents, a grader."""
