-- From version 1 to version 2: what a job accumulates can be counted without reading it. `file/schema` does the rest.

ALTER TABLE steps ADD COLUMN total INTEGER NOT NULL DEFAULT 0;

-- Of older steps, names and times are counted, too.
UPDATE steps SET total = t.total FROM (
    SELECT no, sum(length(body)) OVER (PARTITION BY job ORDER BY number) AS total FROM steps
) AS t
WHERE steps.no = t.no;

ALTER TABLE signals ADD COLUMN size INTEGER NOT NULL DEFAULT 0;

UPDATE signals SET size = length(body);

DROP INDEX signals_by_job;

CREATE UNIQUE INDEX signals_by_job ON signals (job, number, name, size);

CREATE INDEX needs_broken ON needs (job, kind) WHERE kind >= NEED_BROKEN;

-- A job that will run again has not ended.
UPDATE jobs SET ended_at = NULL WHERE status < STATUS_COMPLETED AND ended_at IS NOT NULL;
