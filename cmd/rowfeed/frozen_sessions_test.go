package main

// sessions are the lines of TestFrozenSessions, by the name of the session.
var sessions = map[string]string{
	"feeds": `status
		init
		init
		migrate status
		feed list
		feed add kv --table kv
		feed add kv --table kv
		feed add kv --table kv --columns id
		feed add ev --table ev --mode outbox --json
		feed add more --table kv --capture column --print
		publish --once
		feed list
		feed list --json
		feed show kv
		feed show ev --json
		feed bump kv
		feed upgrade kv
		feed upgrade kv --data-shards 4
		feed drop kv
		feed drop ev
		feed drop ev
		migrate down
		migrate status --json`,
	"reading": `init
		feed add kv --table kv --data-shards 4
		publish --once
		fetch kv
		fetch kv --limit 1
		fetch kv --after now
		fetch kv --after 1 --limit 1
		fetch kv --shard 0 --shard-count 2
		sql DELETE FROM kv WHERE id = 1
		sql INSERT INTO kv VALUES (4, 'ü', '<k>', '"')
		fetch kv --after 3 --consistent
		relay kv --to stdout: --once --consumer lines
		sql UPDATE kv SET v = 'again' WHERE id = 2
		publish --once
		relay kv --to stdout: --once --consumer lines`,
	"consumers": `init
		feed add kv --table kv
		publish --once
		consume
		consumer list
		consumer list --json
		dead list
		dead list app --json
		dead show app --key 2
		dead retry app --key 2
		consume
		dead retry app --key 7
		dead list app --group
		dead drop app --all --dry-run
		dead drop app --all
		dead drop app --all --yes
		consumer pause app
		consumer list app
		consumer resume app
		consumer seek app --feed kv --to 1
		consumer seek app --feed kv --to 99
		consumer reset app
		consumer drop app
		consumer drop app
		lease list
		lease list --json
		lease release nothing`,
	"operating": `init
		feed add kv --table kv
		status
		publish --once
		status kv
		status --json
		check kv
		republish kv --key 1
		republish kv --key 99
		republish kv --all
		unpublish kv --key 2
		publish --once
		fetch kv
		sql DELETE FROM rowfeed_positions_kv WHERE id = 1
		sql DROP TRIGGER rowfeed_kv_insert
		check kv
		check kv --json
		repair kv
		feed upgrade kv
		publish --once
		check kv
		check kv --json
		token add reader --feed kv --right read
		token add reader --feed kv --right read
		token list
		token list --json
		token revoke reader
		audit list
		audit list --limit 1 --json`,
	"errors": `fetch kv
		nothing
		feed nothing
		fetch
		fetch kv --nothing
		fetch kv --db mysql
		fetch kv --db sqlserver://sa:secret@localhost
		fetch kv --db postgres://u:secret@127.0.0.1:1/x
		init
		fetch kv
		feed add kv --table nothing
		feed add kv --table kv --mode nothing
		feed add kv --table kv --key v
		feed add k/v --table kv
		feed add kv --table kv
		fetch kv --after nothing
		fetch kv --after 5
		fetch kv --after 2:1
		fetch kv --limit 0
		fetch kv --shard 1
		fetch kv --shard-count 2
		relay kv --to nothing
		consumer list nothing
		consumer pause nothing
		dead show nothing --key 1
		republish kv
		republish kv --where v=
		publish nothing --once
		unblock kv
		migrate down
		token add t --feed nothing --right read
		token add t --feed kv --right nothing
		token revoke nothing`,
}
