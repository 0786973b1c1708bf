-- What a job accumulates can be counted without reading it: signals have a table of their own, and are deleted when a
-- wait takes them; steps know how large they are. A need knows whether it is broken.
--
-- Processes of version 1 would lose signals here, so none may be left: there is no second phase.

-- before

DO $$
DECLARE
    living text;
BEGIN
    SELECT string_agg(i.name, ', ' ORDER BY i.name COLLATE "C") INTO living FROM shiftwork.instances i
    WHERE i.beat IS NOT NULL AND NOT i.lost AND i.expires_at > date_part('epoch', clock_timestamp());
    IF living IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'object_in_use', DETAIL = living,
            MESSAGE = 'nodes of an older version of shiftwork are still running: stop them first';
    END IF;
END $$;

-- No process of version 1 that only adds jobs may write while they are copied.
LOCK TABLE shiftwork.jobs, shiftwork.steps, shiftwork.needs IN ACCESS EXCLUSIVE MODE;

CREATE TABLE shiftwork.signals (
    namespace integer NOT NULL,
    id        text COLLATE "C" NOT NULL,
    number    integer NOT NULL,           -- they are taken in this order
    size      integer NOT NULL,           -- of the value, in bytes, when it was sent
    name      text COLLATE "C" NOT NULL,
    body      bytea NOT NULL,
    PRIMARY KEY (namespace, id, number)
);

ALTER TABLE shiftwork.steps
    ADD COLUMN size integer NOT NULL DEFAULT 0,    -- of the result, in bytes, when it was kept
    ADD COLUMN total bigint NOT NULL DEFAULT 0;    -- of the results up to this one

-- Of older steps, names and times are counted, too.
UPDATE shiftwork.steps s SET size = t.size, total = t.total FROM (
    SELECT o.namespace, o.id, o.number, octet_length(o.body) AS size,
        sum(octet_length(o.body)) OVER (PARTITION BY o.namespace, o.id ORDER BY o.number) AS total
    FROM shiftwork.steps o
) AS t
WHERE s.namespace = t.namespace AND s.id = t.id AND s.number = t.number;

ALTER TABLE shiftwork.steps ALTER COLUMN size DROP DEFAULT, ALTER COLUMN total DROP DEFAULT;

ALTER TABLE shiftwork.needs ADD COLUMN broken boolean NOT NULL DEFAULT false;  -- the needed job is lost, and any end will not do

-- Which jobs are stranded?
CREATE INDEX needs_broken ON shiftwork.needs (id, namespace) WHERE broken;

-- Signals that a wait has taken are left out. Its step ":got NAME" says so: its result is [true, value], or [false, nil]
-- after a timeout. The original is `shiftwork.core.jobs.durable_functions`.
DO $$
DECLARE
    job record;
    step bytea;
    result bytea;
    name bytea;
    size integer;
    at integer;
    taken boolean[];
BEGIN
    FOR job IN SELECT j.namespace, j.id, j.signals, j.heard FROM shiftwork.jobs j WHERE j.signals IS NOT NULL LOOP
        taken := array_fill(false, ARRAY[cardinality(job.signals)]);
        FOR step IN
            SELECT s.body FROM shiftwork.steps s WHERE s.namespace = job.namespace AND s.id = job.id ORDER BY s.number
        LOOP
            FOR n IN 1 .. cardinality(job.signals) LOOP
                CONTINUE WHEN taken[n];
                name := convert_to(':got ' || job.heard[n], 'UTF8');
                size := octet_length(name);
                name := CASE
                    WHEN size < 32 THEN set_byte('\x00', 0, 160 + size)
                    WHEN size < 256 THEN '\xd9'::bytea || set_byte('\x00', 0, size)
                    ELSE '\xda'::bytea || set_byte(set_byte('\x0000', 0, size / 256), 1, size % 256)
                END || name;
                at := position(name IN substr(step, 1, 4 + octet_length(name)));  -- behind the number
                CONTINUE WHEN at = 0;
                result := substr(step, at + octet_length(name));
                result := substr(result, CASE get_byte(result, 0) WHEN 196 THEN 3 WHEN 197 THEN 4 ELSE 6 END);
                IF substr(result, 1, 2) = '\x92c3' THEN
                    taken[n] := true;
                ELSIF substr(result, 1, 3) = '\xc17377' THEN  -- encrypted; the times follow, nine bytes each
                    taken[n] := octet_length(result) > 43 + 18 OR (
                        substr(job.signals[n], octet_length(job.signals[n]) - 51, 2) = '\xc429'
                        AND substr(job.signals[n], octet_length(job.signals[n]) - 7)
                            <= substr(step, octet_length(step) - 16, 8)
                    );
                END IF;
                EXIT;  -- a wait takes the first one, or none
            END LOOP;
        END LOOP;
        INSERT INTO shiftwork.signals (namespace, id, number, size, name, body)
        SELECT job.namespace, job.id, row_number() OVER (ORDER BY t.n), octet_length(t.body), t.name, t.body
        FROM unnest(job.signals, job.heard, taken) WITH ORDINALITY AS t (body, name, taken, n) WHERE NOT t.taken;
    END LOOP;
END $$;

UPDATE shiftwork.jobs j SET durable = true WHERE j.signals IS NOT NULL AND j.durable IS NULL;

-- A job waits for the first signal of those that are left.
UPDATE shiftwork.jobs j SET wait_nth = 1 WHERE j.wait_nth > 1;

-- A job that will run again has not ended.
UPDATE shiftwork.jobs j SET ended_at = NULL WHERE j.status < 5 AND j.ended_at IS NOT NULL;

ALTER TABLE shiftwork.jobs DROP COLUMN signals, DROP COLUMN heard;

-- after
