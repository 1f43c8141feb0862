"""Public datasets by name: found, downloaded, parsed, and held against their published counts."""
