package testdb

// postgresDump reads the schema from the catalogs, for a PostgreSQL without pg_dump. It leaves out objects of
// extensions and of the system, and prints names in place of object ids.
var postgresDump = []dumpQuery{
	{"schemas", `SELECT nspname, pg_get_userbyid(nspowner), nspacl, obj_description(oid, 'pg_namespace')
		FROM pg_namespace WHERE ` + userSchema + ` ORDER BY nspname`},
	{"extensions", `SELECT extname, extversion, extnamespace::regnamespace FROM pg_extension ORDER BY extname`},
	{"types", `SELECT n.nspname, t.typname, t.typtype, pg_get_userbyid(t.typowner), t.typacl,
			format_type(t.typbasetype, t.typtypmod), t.typnotnull, t.typdefault, obj_description(t.oid, 'pg_type'),
			(SELECT string_agg(enumlabel, ',' ORDER BY enumsortorder) FROM pg_enum WHERE enumtypid = t.oid),
			(SELECT string_agg(conname || ' ' || pg_get_constraintdef(oid), '; ' ORDER BY conname) FROM pg_constraint
			WHERE contypid = t.oid)
		FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace
		WHERE ` + userSchema + ` AND t.typelem = 0 ORDER BY 1, 2`},
	{"relations", `SELECT n.nspname, c.relname, c.relkind, c.relpersistence, pg_get_userbyid(c.relowner),
			-- explicit rights that equal the owner's default rights mean the same as none
			NULLIF(c.relacl::text,
				acldefault(CASE c.relkind WHEN 'S' THEN 's' ELSE 'r' END::"char", c.relowner)::text),
			c.reloptions, c.relrowsecurity, c.relforcerowsecurity, c.relreplident, c.relispartition,
			pg_get_expr(c.relpartbound, c.oid),
			pg_get_partkeydef(c.oid), obj_description(c.oid, 'pg_class'),
			CASE WHEN c.relkind IN ('v', 'm') THEN pg_get_viewdef(c.oid) END,
			(SELECT string_agg(inhparent::regclass::text, ',' ORDER BY inhseqno) FROM pg_inherits
				WHERE inhrelid = c.oid)
		FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE ` + userSchema + ` ORDER BY 1, 2`},
	{"columns", `SELECT n.nspname, c.relname, a.attnum - (SELECT count(*) FROM pg_attribute g
				WHERE g.attrelid = a.attrelid AND g.attisdropped AND g.attnum < a.attnum AND a.attnum > 0),
			a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attidentity, a.attgenerated, a.attstorage,
			a.attcollation::regcollation, a.attstattarget, a.attoptions, a.attacl, pg_get_expr(d.adbin, d.adrelid),
			col_description(c.oid, a.attnum)
		FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
		LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
		WHERE ` + userSchema + ` AND a.attnum > 0 AND NOT a.attisdropped ORDER BY 1, 2, a.attnum`},
	{"constraints",
		`SELECT n.nspname, c.conrelid::regclass, c.conname, c.contype, c.convalidated, pg_get_constraintdef(c.oid),
			obj_description(c.oid, 'pg_constraint')
		FROM pg_constraint c JOIN pg_namespace n ON n.oid = c.connamespace
		WHERE ` + userSchema + ` ORDER BY 1, 2, 3`},
	{"indexes",
		`SELECT n.nspname, c.relname, i.indisvalid, i.indisclustered, i.indisreplident, pg_get_indexdef(i.indexrelid)
		FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE ` + userSchema + ` ORDER BY 1, 2`},
	{"sequences",
		`SELECT s.seqrelid::regclass, format_type(s.seqtypid, NULL), s.seqstart, s.seqincrement, s.seqmax, s.seqmin,
			s.seqcache, s.seqcycle,
			(SELECT d.refobjid::regclass || '.' || d.refobjsubid || ' ' || d.deptype::text FROM pg_depend d
				WHERE d.classid = 'pg_class'::regclass AND d.objid = s.seqrelid AND d.refclassid = 'pg_class'::regclass
				AND d.refobjsubid > 0 AND d.deptype IN ('a', 'i'))
		FROM pg_sequence s JOIN pg_class c ON c.oid = s.seqrelid JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE ` + userSchema + ` ORDER BY 1`},
	{"routines",
		`SELECT n.nspname, p.proname, pg_get_function_identity_arguments(p.oid), p.prokind, pg_get_userbyid(p.proowner),
			p.proacl, CASE WHEN p.prokind = 'a' THEN NULL ELSE pg_get_functiondef(p.oid) END, obj_description(p.oid,
			'pg_proc')
		FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
		WHERE ` + userSchema +
			` AND NOT EXISTS (SELECT FROM pg_depend WHERE classid = 'pg_proc'::regclass AND objid = p.oid AND deptype
				= 'e')
		ORDER BY 1, 2, 3`},
	{"triggers",
		`SELECT t.tgrelid::regclass, t.tgname, t.tgenabled, pg_get_triggerdef(t.oid), obj_description(t.oid,
			'pg_trigger')
		FROM pg_trigger t WHERE NOT t.tgisinternal ORDER BY 1, 2`},
	{"event triggers",
		`SELECT evtname, evtevent, evtfoid::regprocedure, evtenabled, evttags FROM pg_event_trigger ORDER BY 1`},
	{"rules", `SELECT ev_class::regclass, rulename, ev_enabled, pg_get_ruledef(r.oid)
		FROM pg_rewrite r JOIN pg_class c ON c.oid = ev_class JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE ` + userSchema + ` ORDER BY 1, 2`},
	{"policies",
		`SELECT polrelid::regclass, polname, polcmd, polpermissive, polroles::regrole[], pg_get_expr(polqual, polrelid),
			pg_get_expr(polwithcheck, polrelid) FROM pg_policy ORDER BY 1, 2`},
	{"default rights", `SELECT pg_get_userbyid(defaclrole), defaclnamespace::regnamespace, defaclobjtype, defaclacl
		FROM pg_default_acl ORDER BY 1, 2, 3`},
	{"publications", `SELECT pubname, puballtables, pubinsert, pubupdate, pubdelete, pubtruncate,
			(SELECT string_agg(prrelid::regclass::text, ',' ORDER BY prrelid::regclass::text) FROM pg_publication_rel
			WHERE prpubid = p.oid)
		FROM pg_publication p ORDER BY 1`},
	{"extended statistics", `SELECT stxname, pg_get_statisticsobjdef(oid) FROM pg_statistic_ext ORDER BY 1`},
	{"the database", `SELECT pg_get_userbyid(datdba), datacl,
			(SELECT string_agg(pg_get_userbyid(setrole) || ' ' || setconfig::text, '; ' ORDER BY setrole::regrole::text)
				FROM pg_db_role_setting WHERE setdatabase = d.oid)
		FROM pg_database d WHERE datname = current_database()`},
}

// userSchema excludes PostgreSQL's own schemas.
const userSchema = `nspname NOT LIKE 'pg\_%' AND nspname <> 'information_schema'`
