"""What tests of Towpath, and of what plugs into it, are made with."""
