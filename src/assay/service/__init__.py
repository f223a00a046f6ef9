"""What can be asked of assay's store of graders: one table for server, local and remote client."""
