"""The plugin's gates and the harness's statement of them, which a run holds against each other, are the same."""

import pytest
from rvv_inductor import gate as lowering
from sglang_rvv.regional.gate import EXPLICIT_PACKED, ROW_MAJOR, Call, choose
from sglang_rvv.settings import PROJECTIONS

from rvvbench import project
from rvvbench.manifest.load import load_manifest
from rvvbench.manifest.models import Variant
from rvvbench.manifest.regional import mode_of, region
from rvvbench.manifest.shapes import ProjectionShape


def refuses_row_major(m, n, k):
    return lowering.refusal(lowering.Product(m, n, k))


@pytest.mark.parametrize("small_batch", [True, False])
@pytest.mark.parametrize(("name", "mode"), [("inductor-row-major", ROW_MAJOR), ("inductor-packed", EXPLICIT_PACKED)])
@pytest.mark.parametrize("projection", PROJECTIONS)
def test_both_choose_the_same_artifact_for_every_number_of_rows(projection, name, mode, small_batch):
    declared = load_manifest(project.manifests_dir(), "variants", name, Variant)[0]
    declared = declared.model_copy(update={"small_batch": small_batch})
    assert mode_of(declared) == mode
    for biased in (False, True):
        for n, k in ((1024, 1024), (1023, 4096), (4096, 1023), (151_936, 1536), (32, 64)):
            shape = ProjectionShape(projection, n, k, 1, biased)
            for rows in range(1, 200):
                call = Call(projection, rows, n, k, mode, biased=biased)
                chosen = choose(call, small_batch=small_batch, refuses_row_major=refuses_row_major)
                assert chosen.bucket == region(shape, rows, declared).bucket, (rows, n, k, biased)
