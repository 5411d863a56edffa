CREATE TYPE mood AS ENUM ('calm', 'so so', 'très agité');
CREATE DOMAIN positive AS integer CHECK (value > 0);
CREATE TYPE pair AS (a integer, b text);
CREATE TABLE "Odd ""names"" ÿ" (
    "select" bigint PRIMARY KEY, b boolean, i2 smallint, i4 integer, f4 real, f8 double precision,
    n numeric, n2 numeric(12,2), n0 numeric(30,0), nbig numeric(50,5), t text, v varchar(10),
    c char(5), nm name, by bytea, d date, ts timestamp, ts3 timestamp(3), tz timestamptz,
    ti time, tiz timetz, iv interval, j json, jb jsonb, u uuid, m mood, pos positive, p pair,
    ia integer[], ta text[][], r int4range, tr tstzrange, mr int4multirange, bt bit(5),
    vb bit varying(9), mo money, ip inet, ci cidr, mac macaddr, pt point, lsn pg_lsn, o oid,
    tsv tsvector, ma mood[], ua uuid[], na numeric(6,3)[], ba bytea[], ch "char"
);
INSERT INTO "Odd ""names"" ÿ" VALUES
(1, true, 32767, 2147483647, 1.5e10, 0.1, 'NaN', 'NaN', 'NaN', 'NaN', E'a\tb\n"x"\\ é😀', 'ten chars!',
 'ab', 'name', '\x0001ff', 'infinity', 'infinity', 'infinity', 'infinity', '24:00:00', '23:59:59.999999-15',
 '-1 year 2 mons -3 days 04:05:06.7', '{"b":  1, "b": [1,null]}', '{"b": 1.10, "a": "\\u00e9"}',
 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', 'très agité', 7, '(1,"x ""y"", z")', '{1,NULL,3}',
 '{{a,"b c"},{NULL,"NULL"}}', '[1,5)', '["2024-01-01 00:00:00+00",)', '{[1,3),[5,7)}', '10101', '1',
 '-1234.56', '10.0.0.1/8', '10.0.0.0/8', '08:00:2b:01:02:03', '(1.5,-2)', '16/B374D848', 4294967295,
 '''a'' b:1A', '{calm,NULL,"so so"}', '{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}', '{1.5,NULL}',
 '{"\\x00"}', 'x'),
(-9223372036854775808, false, -32768, -2147483648, 'NaN', '-Infinity', '-Infinity', -9999999999.99,
 123456789012345678901234567890, 123456789012345678901234567890123456789012345.12345, '', '', '', '',
 '', '-infinity', '-infinity', '-infinity', '-infinity', '00:00:00', '00:00:00+15', '0', 'null', 'null',
 '00000000-0000-0000-0000-000000000000', 'calm', 1, '(,)', '{}', '{}', 'empty', 'empty', '{}', '00000',
 '', '0', '::1', '::/0', '00:00:00:00:00:00', '(0,0)', '0/0', 0, '', '{}', '{}', '{}', '{}', ''),
(2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
 NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
 NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
(3, true, 0, 0, '-0', '-0', 0.000, 0.01, -1, 0.00001, 'x', 'y  ', 'z', 'n', '\x5c', '4713-01-01 BC',
 '4713-01-01 00:00:00 BC', '2024-02-29 12:00:00.123', '0044-03-15 00:00:00 BC', '12:00', '12:00+00',
 '1 day', '1', '1', 'ffffffff-ffff-ffff-ffff-ffffffffffff', 'so so', 2147483647, '(1,)', '[2:3]={7,8}',
 '{{{a}}}', '(,)', '(,"2024-01-01 00:00:00+00"]', '{(,)}', '11111', '010101010', '$1.00', '1.2.3.4',
 '1.2.3.4/32', 'ff:ff:ff:ff:ff:ff', '(1e10,1e-10)', 'F/F', 1, 'a:1', '[5:5]={calm}', NULL, NULL, NULL, NULL),
(4, true, 1, 1, 1, 1, 1e100, 1, 1, 1, 'x', 'y', 'z', 'n', '', '5874897-12-31', '2024-01-01', '2024-01-01',
 '2024-01-01', '12:00', '12:00', '1', '1', '1', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
 NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
