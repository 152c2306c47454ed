"""A neural family in three files: a recurrent cell that reads a row block by block and guesses the next one."""
