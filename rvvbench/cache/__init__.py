"""What a compiler leaves: kept by a key of all that it depends on, given to a process cold or warm, and looked at
before and after.
"""
