-- What a role without any rights on our schema can do where it may create objects in the schema public: it defines a twin of every function
-- and operator of PostgreSQL, and functions and operators whose parameters fit better than those of PostgreSQL. Each of them
-- counts that it was called, which no rollback undoes, and fails. A twin of a type does so when something is cast to it.

DO $$
BEGIN
    IF NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'mallory') THEN
        CREATE ROLE mallory;
    END IF;
END $$;
GRANT USAGE, CREATE ON SCHEMA public TO mallory;
SET ROLE mallory;
SET search_path = pg_catalog;  -- it must not fall into its own traps
SET check_function_bodies = off;
CREATE SEQUENCE public.hijacked;
GRANT USAGE, SELECT, UPDATE ON public.hijacked TO PUBLIC;

DO $do$
DECLARE
    body constant text := $body$BEGIN PERFORM pg_catalog.nextval('public.hijacked'); RAISE EXCEPTION 'hijacked by public.%'; END$body$;
    numbers constant text[] := '{int2,int4,int8,float8,numeric}';
    arrays constant text[] := '{text[],bytea[],int2[],int4[],int8[],float8[],bool[],tid[]}';
    f record;
BEGIN
    -- Twins of the functions, and those with text arrays or texts for parameters that take any type.
    FOR f IN
        SELECT DISTINCT p.proname AS name, a.given
        FROM pg_catalog.pg_proc p
        CROSS JOIN LATERAL unnest(
            CASE WHEN EXISTS (
                SELECT 1 FROM unnest(p.proargtypes) AS t (type) JOIN pg_type y ON y.oid = t.type WHERE y.typtype = 'p'
            ) THEN arrays || '{text,int4,int8,float8}' ELSE '{-}' END
        ) AS kind
        CROSS JOIN LATERAL (
            SELECT coalesce(string_agg(
                CASE
                    WHEN y.typtype <> 'p' THEN format_type(t.type, NULL)
                    WHEN y.typname LIKE '%array' THEN CASE WHEN kind LIKE '%[]' THEN kind ELSE kind || '[]' END
                    ELSE kind
                END, ', ' ORDER BY t.n
            ), '') AS given
            FROM unnest(p.proargtypes) WITH ORDINALITY AS t (type, n) JOIN pg_type y ON y.oid = t.type
        ) AS a
        WHERE p.pronamespace = 'pg_catalog'::regnamespace AND p.proname = ANY ({names})
    LOOP
        EXECUTE format(
            'CREATE OR REPLACE FUNCTION public.%I(%s) RETURNS void LANGUAGE plpgsql AS %L', f.name, f.given,
            replace(body, '%', f.name || '(' || f.given || ')')
        );
    END LOOP;
    -- Twins of the operators, and those of which the numbers or arrays need no conversion.
    FOR f IN
        SELECT DISTINCT o.oprname AS name, format_type(o.oprleft, NULL) AS lhs, format_type(o.oprright, NULL) AS rhs
        FROM pg_catalog.pg_operator o JOIN pg_type l ON l.oid = o.oprleft JOIN pg_type r ON r.oid = o.oprright
        WHERE o.oprname = ANY ({operators}) AND l.typname = ANY ({types}) AND r.typname = ANY ({types})
        UNION
        SELECT o.name, format_type(l::regtype, NULL), format_type(r::regtype, NULL)
        FROM unnest({operators}) AS o (name), unnest(numbers) AS l, unnest(numbers) AS r
        UNION
        SELECT o.name, format_type(a::regtype, NULL), format_type(a::regtype, NULL) FROM unnest({operators}) AS o (name), unnest(arrays) AS a
        UNION
        SELECT '||', 'text', format_type(a::regtype, NULL) FROM unnest(numbers || arrays) AS a
    LOOP
        EXECUTE format(
            'CREATE OR REPLACE FUNCTION public.hijack(%s, %s) RETURNS boolean LANGUAGE plpgsql AS %L', f.lhs, f.rhs,
            replace(body, '%', 'an operator on ' || f.lhs || ' and ' || f.rhs)
        );
        EXECUTE format(
            'CREATE OPERATOR public.%s (FUNCTION = public.hijack, LEFTARG = %s, RIGHTARG = %s)', f.name, f.lhs, f.rhs
        );
    END LOOP;
END $do$;

CREATE FUNCTION public.hijacked_type(name text) RETURNS boolean LANGUAGE plpgsql AS $body$
BEGIN
    PERFORM pg_catalog.nextval('public.hijacked');
    RAISE EXCEPTION 'hijacked by the type public.%', name;
END $body$;
DO $do$
DECLARE
    type text;
BEGIN
    FOREACH type IN ARRAY {types} LOOP
        EXECUTE format('CREATE DOMAIN public.%I AS pg_catalog.%1$I CHECK (public.hijacked_type(%1$L))', type);
    END LOOP;
END $do$;
RESET search_path;
RESET check_function_bodies;
RESET ROLE;
