"""What every implementation of a port must do, as tests that anybody can run against theirs."""
