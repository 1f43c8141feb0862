import pytest

from pres.data.datasets.registry import DATASETS, Download, find_dataset
from pres.errors import UnknownDatasetError


def test_a_near_name_is_offered_and_all_are_listed() -> None:
    with pytest.raises(UnknownDatasetError, match=r"'wikipdia'\. Did you mean 'wikipedia'\?.*icews18"):
        find_dataset("wikipdia")
    with pytest.raises(UnknownDatasetError, match=r"use pres\.read"):
        find_dataset("clicks.csv")


def test_case_does_not_matter() -> None:
    assert find_dataset("Wikipedia").name == "wikipedia"


def test_sources_and_destinations_of_every_bipartite_set_add_up() -> None:
    for dataset in DATASETS.values():
        counts = dataset.counts
        if counts is not None and counts.src is not None and counts.dst is not None:
            assert counts.src + counts.dst == counts.nodes, dataset.name


def test_every_dataset_can_be_had_and_cited() -> None:
    for dataset in DATASETS.values():
        assert dataset.embedded or (dataset.downloads and dataset.citation and dataset.formats)


def test_a_download_is_kept_under_its_own_name() -> None:
    assert Download("https://example.org/files/enron.zip?download=1").file == "enron.zip"
