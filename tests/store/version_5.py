"""A campaign file as the first version with format 5 wrote it, as SQL."""

#: Its tables, with one dimension, `speed`.
VERSION_5 = """
PRAGMA application_id = 1885762938;
PRAGMA user_version = 5;
CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE dimensions (position INTEGER PRIMARY KEY, name TEXT, column TEXT, kind TEXT, low REAL, \
high REAL, \
unit TEXT, options TEXT);
CREATE TABLE findings ("id" INTEGER PRIMARY KEY, "status" TEXT NOT NULL, "is_distinct" INTEGER NOT NULL, \
"kind" TEXT NOT NULL, "crash_step" INTEGER NOT NULL, "return" REAL, "parent" INTEGER, \
"case_seed" INTEGER NOT NULL, "batch" INTEGER NOT NULL, "execution" INTEGER NOT NULL, \
"seconds" REAL NOT NULL, \
"origin" TEXT, "speed" REAL NOT NULL);
CREATE TABLE seeds ("id" INTEGER PRIMARY KEY, "parent" INTEGER, "case_seed" INTEGER NOT NULL, "return" REAL, \
"energy" REAL, "log_density" REAL, "distance" REAL, "tie_break" REAL, "is_crash" INTEGER NOT NULL, \
"niche" INTEGER NOT NULL, "batch" INTEGER NOT NULL, "seconds" REAL NOT NULL, "origin" TEXT, \
"speed" REAL NOT NULL);
CREATE TABLE errors ("id" INTEGER PRIMARY KEY, "kind" TEXT NOT NULL, "step" INTEGER NOT NULL, \
"text" TEXT NOT NULL, "purpose" TEXT NOT NULL, "finding" INTEGER, "case_seed" INTEGER NOT NULL, \
"batch" INTEGER NOT NULL, "execution" INTEGER NOT NULL, "seconds" REAL NOT NULL, "speed" REAL NOT NULL);
CREATE TABLE batches ("id" INTEGER PRIMARY KEY, "seconds" REAL NOT NULL, "executions" INTEGER NOT NULL, \
"samples" INTEGER NOT NULL, "sample_crashes" INTEGER NOT NULL, "mutants" INTEGER NOT NULL, \
"mutant_crashes" INTEGER NOT NULL, "imports" INTEGER NOT NULL, "findings" INTEGER NOT NULL, \
"distinct_findings" INTEGER NOT NULL, "imported_findings" INTEGER NOT NULL, "flaky" INTEGER NOT NULL, \
"unconfirmed" INTEGER NOT NULL, "errors" INTEGER NOT NULL, "hangs" INTEGER NOT NULL, \
"simulator_crashes" INTEGER NOT NULL, "corpus" INTEGER NOT NULL, "drawn" INTEGER NOT NULL, \
"invalid" INTEGER NOT NULL, "unsolvable" INTEGER NOT NULL, "simulate_seconds" REAL NOT NULL, \
"validate_seconds" REAL NOT NULL, "density_seconds" REAL NOT NULL, "search_seconds" REAL NOT NULL, \
"store_seconds" REAL NOT NULL, "workers" INTEGER NOT NULL, "workers_ready" INTEGER NOT NULL, \
"worker_seconds" REAL NOT NULL, "busy_seconds" REAL NOT NULL, "restarts" INTEGER NOT NULL, \
"fresh_share" REAL, "fresh_threshold" REAL);
CREATE TABLE state (name TEXT PRIMARY KEY, dtype TEXT, shape TEXT, data BLOB);
"""
VERSION_5_ROWS = """
INSERT INTO about VALUES ('config', '{"batch_size": 64, "code_sha256": "", "distinct_radius": 0.01, \
"policy": null, "policy_sha256": "", "search": {"density": {"components": 10, "forgetting": 0.0, \
"regularisation": 0.0001}, "freshness": {"memory": 2048, "quantile": 0.05, "threshold": null}, \
"samples": 1000, "sensitivity": "lineage"}, "seed": 3, "strategy": "mdpfuzz", "target": "ripple", \
"window": 2}');
INSERT INTO dimensions VALUES (0, 'speed', 'speed', 'real', 0.0, 9.0, 'm/s', NULL);
INSERT INTO findings VALUES (1, 'confirmed', 1, 'caught', 7, NULL, 4, 9223372036854775807, 2, 70, 0.5, \
'b', 1.5);
INSERT INTO seeds VALUES (0, NULL, 9223372036854775807, -1.5, NULL, NULL, 0.25, 0.5, 0, 3, 1, 0.1, NULL, 2.5);
INSERT INTO seeds VALUES (1, 0, 6, NULL, 2.0, -3.0, NULL, NULL, 1, 4, 2, 0.5, 'b', 3.5);
INSERT INTO errors VALUES (1, 'raised', 3, 'ValueError: no', 'mutant', 1, 8, 2, 71, 0.75, 4.5);
INSERT INTO batches VALUES (1, 0.25, 64, 64, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 10, 80, 10, 6, 0.1, \
0.02, 0.03, \
0.04, 0.05, 2, 1, 0.5, 0.2, 0, NULL, NULL);
INSERT INTO state VALUES ('a', '<i8', '[2, 1]', x'01000000000000000200000000000000');
"""
