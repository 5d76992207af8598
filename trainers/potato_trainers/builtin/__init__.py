"""The trainers that come with the program, one file each."""
