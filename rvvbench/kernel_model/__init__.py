"""What the kernels cost on a SpacemiT X60, without one: executed instructions counted, and priced by a timing model."""
