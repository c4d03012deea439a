PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE IF NOT EXISTS "rowfeed_schema_version" (
  version INTEGER PRIMARY KEY,
  applied_at INTEGER NOT NULL
);
INSERT INTO rowfeed_schema_version VALUES(1,1795677365647000);
INSERT INTO rowfeed_schema_version VALUES(2,1795677365647000);
INSERT INTO rowfeed_schema_version VALUES(3,1795677365647000);
INSERT INTO rowfeed_schema_version VALUES(4,1795677365647000);
INSERT INTO rowfeed_schema_version VALUES(5,1795677365647000);
INSERT INTO rowfeed_schema_version VALUES(6,1795677365647000);
INSERT INTO rowfeed_schema_version VALUES(7,1795677365647000);
INSERT INTO rowfeed_schema_version VALUES(8,1795677365648000);
INSERT INTO rowfeed_schema_version VALUES(9,1795677365648000);
INSERT INTO rowfeed_schema_version VALUES(10,1795677365649000);
CREATE TABLE IF NOT EXISTS "rowfeed_sequences" (
  name TEXT NOT NULL PRIMARY KEY,
  value INTEGER NOT NULL,
  version INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
);
INSERT INTO rowfeed_sequences VALUES('single',6,2,1795677365732000);
INSERT INTO rowfeed_sequences VALUES('composite',6,2,1795677365865000);
INSERT INTO rowfeed_sequences VALUES('columned',6,2,1795677365996000);
INSERT INTO rowfeed_sequences VALUES('sharded',6,2,1795677366114000);
INSERT INTO rowfeed_sequences VALUES('appended',0,0,1795677366131000);
INSERT INTO rowfeed_sequences VALUES('captured',0,0,1795677366248000);
INSERT INTO rowfeed_sequences VALUES('blocking',0,0,1795677366336000);
CREATE TABLE IF NOT EXISTS "rowfeed_feeds" (
  name TEXT NOT NULL PRIMARY KEY,
  mode TEXT NOT NULL,
  capture TEXT NOT NULL,
  state TEXT NOT NULL,
  generation INTEGER NOT NULL,
  source_schema TEXT,
  source_table TEXT NOT NULL,
  key_columns TEXT NOT NULL,
  delivered_columns TEXT,
  options TEXT NOT NULL,
  data_shards INTEGER NOT NULL,
  shard_column TEXT,
  tombstones_seconds INTEGER NOT NULL,
  tombstones_below INTEGER NOT NULL,
  database_identity TEXT,
  fill_after TEXT,
  created_at INTEGER NOT NULL
, failure text, failing_since bigint, attempts bigint, next_try bigint);
INSERT INTO rowfeed_feeds VALUES('single','sequence','trigger','active',1,NULL,'single','[{"name":"id","type":"BIGINT","decl":"BIGINT","kind":"dynamic","stored":"id","collate":" COLLATE \"BINARY\"","exact":true}]',NULL,'{"primary_key":true}',1,NULL,2592000,0,NULL,NULL,1795677365652000,NULL,NULL,NULL,NULL);
INSERT INTO rowfeed_feeds VALUES('composite','sequence','trigger','active',1,NULL,'composite','[{"name":"ns","type":"VARCHAR(50)","decl":"VARCHAR(50)","kind":"dynamic","stored":"ns","collate":" COLLATE \"BINARY\"","exact":true},{"name":"id","type":"VARCHAR(50)","decl":"VARCHAR(50)","kind":"dynamic","stored":"id","collate":" COLLATE \"BINARY\"","exact":true}]',NULL,'{"primary_key":true}',1,NULL,2592000,0,NULL,NULL,1795677365736000,NULL,NULL,NULL,NULL);
INSERT INTO rowfeed_feeds VALUES('columned','sequence','column','active',1,NULL,'columned','[{"name":"id","type":"BIGINT","decl":"BIGINT","kind":"dynamic","stored":"id","collate":" COLLATE \"BINARY\"","exact":true}]',NULL,'{"primary_key":true,"added":["feed_sync_id","shard"]}',1,NULL,2592000,0,NULL,NULL,1795677365870000,NULL,NULL,NULL,NULL);
INSERT INTO rowfeed_feeds VALUES('sharded','sequence','trigger','active',1,NULL,'sharded','[{"name":"id","type":"BIGINT","decl":"BIGINT","kind":"dynamic","stored":"id","collate":" COLLATE \"BINARY\"","exact":true}]',NULL,'{"primary_key":true}',8,NULL,2592000,0,NULL,NULL,1795677365999000,NULL,NULL,NULL,NULL);
INSERT INTO rowfeed_feeds VALUES('appended','outbox','app','active',1,NULL,'appended','[{"name":"id","type":"BIGINT","decl":"BIGINT","kind":"dynamic","stored":"id","collate":" COLLATE \"BINARY\"","exact":true}]',NULL,'{"primary_key":true,"ulids":{"Position":{"name":"ulid","type":"BLOB","decl":"BLOB","kind":"binary"},"Shard":{"name":"shard","type":"bigint","kind":"integer"},"Index":"place"},"runs":1}',1,NULL,0,0,NULL,NULL,1795677366131000,NULL,NULL,NULL,NULL);
INSERT INTO rowfeed_feeds VALUES('captured','outbox','trigger','active',1,NULL,'captured','[{"name":"id","type":"BIGINT","decl":"BIGINT","kind":"dynamic","stored":"id","collate":" COLLATE \"BINARY\"","exact":true}]',NULL,'{"primary_key":true,"ulids":{"Position":{"name":"ulid","type":"BLOB","decl":"BLOB","kind":"binary"},"Shard":{"name":"shard","type":"bigint","kind":"integer"},"Index":"place"},"runs":1}',1,'v',0,0,NULL,NULL,1795677366248000,NULL,NULL,NULL,NULL);
INSERT INTO rowfeed_feeds VALUES('blocking','blocking','none','active',1,NULL,'blocking','[{"name":"id","type":"BIGINT","decl":"BIGINT","kind":"dynamic","stored":"id","collate":" COLLATE \"BINARY\"","exact":true}]',NULL,'{"primary_key":true,"ulids":{"Position":{"name":"u","type":"BLOB","decl":"BLOB","kind":"binary","collate":" COLLATE \"BINARY\""},"Shard":{"name":"v","type":"INT","decl":"INT","kind":"dynamic","collate":" COLLATE \"BINARY\"","exact":true},"Index":"blocking_feed"}}',1,'v',0,0,NULL,NULL,1795677366336000,NULL,NULL,NULL,NULL);
CREATE TABLE IF NOT EXISTS "rowfeed_cursors" (
  consumer TEXT NOT NULL,
  feed TEXT NOT NULL,
  shard INTEGER NOT NULL,
  shard_count INTEGER NOT NULL,
  value TEXT NOT NULL,
  generation INTEGER NOT NULL,
  epoch INTEGER NOT NULL,
  version INTEGER NOT NULL,
  paused INTEGER NOT NULL,
  aside INTEGER NOT NULL DEFAULT 0,
  updated_at INTEGER NOT NULL, failure TEXT, failing_since bigint, attempts bigint, next_try bigint, target text,
  PRIMARY KEY (consumer, feed, shard)
);
INSERT INTO rowfeed_cursors VALUES('app','single',0,1,'4',1,0,6,0,1,1795677365731000,NULL,NULL,NULL,NULL,NULL);
INSERT INTO rowfeed_cursors VALUES('app','composite',0,1,'4',1,0,6,0,1,1795677365863000,NULL,NULL,NULL,NULL,NULL);
INSERT INTO rowfeed_cursors VALUES('app','columned',0,1,'4',1,0,6,0,1,1795677365994000,NULL,NULL,NULL,NULL,NULL);
INSERT INTO rowfeed_cursors VALUES('app','sharded',0,1,'4',1,0,6,0,1,1795677366111000,NULL,NULL,NULL,NULL,NULL);
INSERT INTO rowfeed_cursors VALUES('halves','sharded',0,2,'6',1,0,3,0,0,1795677366118000,NULL,NULL,NULL,NULL,NULL);
INSERT INTO rowfeed_cursors VALUES('halves','sharded',1,2,'6',1,0,1,0,0,1795677366120000,NULL,NULL,NULL,NULL,NULL);
INSERT INTO rowfeed_cursors VALUES('paused','sharded',0,1,'6',1,0,7,1,0,1795677366127000,NULL,NULL,NULL,NULL,NULL);
INSERT INTO rowfeed_cursors VALUES('app','appended',1,1,'01M8BBC9VXFPDHNZEP6FF3DV23',1,0,4,0,1,1795677366242000,NULL,NULL,NULL,NULL,NULL);
INSERT INTO rowfeed_cursors VALUES('app','captured',1,1,'01M8BBC9ZC5V9HG6JG6WFVEBP2',1,0,4,0,1,1795677366331000,NULL,NULL,NULL,NULL,NULL);
INSERT INTO rowfeed_cursors VALUES('app','blocking',1,1,'01M8BBCA220XTVMFZ6P7YCJVQK',1,0,4,0,1,1795677366454000,NULL,NULL,NULL,NULL,NULL);
CREATE TABLE IF NOT EXISTS "rowfeed_dead_letters" (
  consumer TEXT NOT NULL,
  feed TEXT NOT NULL,
  shard INTEGER NOT NULL,
  key_digest TEXT NOT NULL,
  key_json TEXT NOT NULL,
  generation INTEGER NOT NULL,
  position TEXT NOT NULL,
  op TEXT NOT NULL,
  state TEXT NOT NULL,
  attempts INTEGER NOT NULL,
  collapsed INTEGER NOT NULL,
  error TEXT NOT NULL,
  first_at INTEGER NOT NULL,
  last_at INTEGER NOT NULL, data_shard INTEGER,
  PRIMARY KEY (consumer, feed, shard, key_digest)
);
INSERT INTO rowfeed_dead_letters VALUES('app','single',0,'9e7e65453739bbc64ba155eed18a37bd5fb1196c7f29ded1da660b94414d7ad8','{"id":2}',1,'2','upsert','aside',2,0,'the handler fails for this row',1795677365729000,1795677365729000,0);
INSERT INTO rowfeed_dead_letters VALUES('app','composite',0,'c1a6bcd0cdf9d1276383bca80fe614acacefc699915ad049916febfc1bdaf635','{"ns":"ü","id":"2"}',1,'2','upsert','aside',2,0,'the handler fails for this row',1795677365860000,1795677365860000,0);
INSERT INTO rowfeed_dead_letters VALUES('app','columned',0,'9e7e65453739bbc64ba155eed18a37bd5fb1196c7f29ded1da660b94414d7ad8','{"id":2}',1,'2','upsert','aside',2,0,'the handler fails for this row',1795677365991000,1795677365991000,0);
INSERT INTO rowfeed_dead_letters VALUES('app','sharded',0,'9e7e65453739bbc64ba155eed18a37bd5fb1196c7f29ded1da660b94414d7ad8','{"id":2}',1,'2','upsert','aside',2,0,'the handler fails for this row',1795677366106000,1795677366106000,5);
INSERT INTO rowfeed_dead_letters VALUES('app','appended',1,'9e7e65453739bbc64ba155eed18a37bd5fb1196c7f29ded1da660b94414d7ad8','{"id":2}',1,'01M8BBC9VXFPDHNZEP6FF3DV21','upsert','aside',2,0,'the handler fails for this row',1795677366240000,1795677366240000,1);
INSERT INTO rowfeed_dead_letters VALUES('app','captured',1,'9e7e65453739bbc64ba155eed18a37bd5fb1196c7f29ded1da660b94414d7ad8','{"id":2}',1,'01M8BBC9ZC5V9HG6JG6WFVEBP0','upsert','aside',2,0,'the handler fails for this row',1795677366329000,1795677366329000,1);
INSERT INTO rowfeed_dead_letters VALUES('app','blocking',1,'9e7e65453739bbc64ba155eed18a37bd5fb1196c7f29ded1da660b94414d7ad8','{"id":2}',1,'01M8BBCA21ASQAVJ2K3P5ZPNMQ','upsert','aside',2,0,'the handler fails for this row',1795677366450000,1795677366450000,1);
CREATE TABLE IF NOT EXISTS "rowfeed_processed" (
  consumer TEXT NOT NULL,
  feed TEXT NOT NULL,
  generation INTEGER NOT NULL,
  shard INTEGER NOT NULL,
  position TEXT NOT NULL,
  processed_at INTEGER NOT NULL,
  PRIMARY KEY (consumer, feed, generation, shard, position)
) WITHOUT ROWID;
INSERT INTO rowfeed_processed VALUES('marks','sharded',1,7,'0000000000000000001',1795677366129000);
CREATE TABLE IF NOT EXISTS "rowfeed_leases" (
  name TEXT NOT NULL PRIMARY KEY,
  owner TEXT NOT NULL,
  epoch INTEGER NOT NULL,
  expires_at INTEGER,
  acquired_at INTEGER NOT NULL,
  renewals INTEGER NOT NULL
);
INSERT INTO rowfeed_leases VALUES('stored','vm/12255/dhwbvdth6ww3u4n2umk37g4hqw',1,1795680966459000,1795677366459000,0);
CREATE TABLE IF NOT EXISTS "rowfeed_shards" (
  feed TEXT NOT NULL,
  shard INTEGER NOT NULL,
  time_ms INTEGER NOT NULL,
  ulid_high INTEGER NOT NULL,
  ulid_low INTEGER NOT NULL,
  below_high INTEGER NOT NULL DEFAULT 0,
  below_low INTEGER NOT NULL DEFAULT 0,
  witness TEXT NOT NULL,
  live_from INTEGER NOT NULL DEFAULT 0,
  filled_by INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (feed, shard)
);
INSERT INTO rowfeed_shards VALUES('appended',1,1795677366244,117681511874221694,-6414851379192387823,0,0,'',1795677366141,0);
INSERT INTO rowfeed_shards VALUES('captured',1,1795677366332,117681511879948706,-8546619453597376352,0,0,'',1795677366252,0);
INSERT INTO rowfeed_shards VALUES('blocking',1,1795677366458,117681511888206431,3836168924643487002,0,0,'XkR4RZwfJ1oeTO_7 13XdYzSRPDKJSakb a4S5crx_g2yXqQnK 2Xmfarwr6cBn8q3Y piQns3zT9khqXsgI qHdcBVn2C6JURW39',0,0);
CREATE TABLE IF NOT EXISTS "rowfeed_consumers" (
  consumer TEXT NOT NULL,
  feed TEXT NOT NULL,
  shard_count INTEGER NOT NULL,
  paused INTEGER NOT NULL,
  version INTEGER NOT NULL,
  PRIMARY KEY (consumer, feed)
);
INSERT INTO rowfeed_consumers VALUES('app','appended',1,0,1);
INSERT INTO rowfeed_consumers VALUES('app','captured',1,0,1);
INSERT INTO rowfeed_consumers VALUES('app','blocking',1,0,1);
CREATE TABLE IF NOT EXISTS "rowfeed_tokens" (
  name TEXT NOT NULL PRIMARY KEY,
  sha256 TEXT NOT NULL UNIQUE,
  grants TEXT NOT NULL,
  view TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER,
  revoked_at INTEGER
);
INSERT INTO rowfeed_tokens VALUES('stored','ad95e6dcbf544fb3f67d495617e7a66d3b5baa563f250da697d3e4e0476aec95','[{"right":"read","feed":"single"}]','{}',1795677366464000,NULL,NULL);
CREATE TABLE IF NOT EXISTS "rowfeed_audit" (
  id INTEGER PRIMARY KEY,
  mark TEXT NOT NULL,
  at INTEGER NOT NULL,
  actor TEXT NOT NULL,
  act TEXT NOT NULL,
  object TEXT NOT NULL,
  detail TEXT NOT NULL,
  outcome TEXT NOT NULL
);
INSERT INTO rowfeed_audit VALUES(1,'6rhmygo7aea3nw6rrhtczbkbcd',1795677366458000,'ü@stored','consumer pause','consumer paused','one feed','done');
CREATE TABLE saved (feed VARCHAR(50) NOT NULL PRIMARY KEY, after VARCHAR(100) NOT NULL, entries TEXT);
INSERT INTO saved VALUES('single','4',replace('{"position":"1","shard":0,"op":"upsert","key":{"id":1},"row":{"id":1,"v":1}}\n{"position":"2","shard":0,"op":"upsert","key":{"id":2},"row":{"id":2,"v":1}}\n{"position":"4","shard":0,"op":"upsert","key":{"id":4},"row":{"id":4,"v":1}}\n{"position":"6","shard":0,"op":"upsert","key":{"id":5},"row":{"id":5,"v":1}}','\n',char(10)));
INSERT INTO saved VALUES('composite','4',replace('{"position":"1","shard":0,"op":"upsert","key":{"ns":"ü","id":"1"},"row":{"ns":"ü","id":"1","v":1}}\n{"position":"2","shard":0,"op":"upsert","key":{"ns":"ü","id":"2"},"row":{"ns":"ü","id":"2","v":1}}\n{"position":"4","shard":0,"op":"upsert","key":{"ns":"ü","id":"4"},"row":{"ns":"ü","id":"4","v":1}}\n{"position":"6","shard":0,"op":"upsert","key":{"ns":"ü","id":"5"},"row":{"ns":"ü","id":"5","v":1}}','\n',char(10)));
INSERT INTO saved VALUES('columned','4',replace('{"position":"1","shard":0,"op":"upsert","key":{"id":1},"row":{"id":1,"v":1}}\n{"position":"2","shard":0,"op":"upsert","key":{"id":2},"row":{"id":2,"v":1}}\n{"position":"4","shard":0,"op":"upsert","key":{"id":4},"row":{"id":4,"v":1}}\n{"position":"6","shard":0,"op":"upsert","key":{"id":5},"row":{"id":5,"v":1}}','\n',char(10)));
INSERT INTO saved VALUES('sharded','4',replace('{"position":"1","shard":7,"op":"upsert","key":{"id":1},"row":{"id":1,"v":1}}\n{"position":"2","shard":5,"op":"upsert","key":{"id":2},"row":{"id":2,"v":1}}\n{"position":"4","shard":0,"op":"upsert","key":{"id":4},"row":{"id":4,"v":1}}\n{"position":"6","shard":6,"op":"upsert","key":{"id":5},"row":{"id":5,"v":1}}','\n',char(10)));
INSERT INTO saved VALUES('appended','01M8BBC9VXFPDHNZEP6FF3DV23',replace('{"position":"01M8BBC9VXFPDHNZEP6FF3DV20","shard":1,"op":"upsert","key":{"id":1},"row":{"id":1,"v":1}}\n{"position":"01M8BBC9VXFPDHNZEP6FF3DV21","shard":1,"op":"upsert","key":{"id":2},"row":{"id":2,"v":1}}\n{"position":"01M8BBC9VXFPDHNZEP6FF3DV22","shard":1,"op":"upsert","key":{"id":3},"row":{"id":3,"v":1}}\n{"position":"01M8BBC9VXFPDHNZEP6FF3DV23","shard":1,"op":"upsert","key":{"id":4},"row":{"id":4,"v":1}}\n{"position":"01M8BBC9Z4TSZADYEYN1R509RG","shard":1,"op":"upsert","key":{"id":5},"row":{"id":5,"v":1}}','\n',char(10)));
INSERT INTO saved VALUES('captured','01M8BBC9ZC5V9HG6JG6WFVEBP2',replace('{"position":"01M8BBC9ZC5V9HG6JG6WFVEBNZ","shard":1,"op":"upsert","key":{"id":1},"row":{"id":1,"v":1}}\n{"position":"01M8BBC9ZC5V9HG6JG6WFVEBP0","shard":1,"op":"upsert","key":{"id":2},"row":{"id":2,"v":1}}\n{"position":"01M8BBC9ZC5V9HG6JG6WFVEBP1","shard":1,"op":"upsert","key":{"id":3},"row":{"id":3,"v":1}}\n{"position":"01M8BBC9ZC5V9HG6JG6WFVEBP2","shard":1,"op":"upsert","key":{"id":4},"row":{"id":4,"v":1}}\n{"position":"01M8BBCA1W76H8JS2EWE6Y584Z","shard":1,"op":"upsert","key":{"id":5},"row":{"id":5,"v":1}}','\n',char(10)));
INSERT INTO saved VALUES('blocking','01M8BBCA220XTVMFZ6P7YCJVQK',replace('{"position":"01M8BBCA21ASQAVJ2K0S1R8VMQ","shard":1,"op":"upsert","key":{"id":1},"row":{"id":1,"v":1,"u":"AaIWtihBVm6tyFMGQ4Rulw=="}}\n{"position":"01M8BBCA21ASQAVJ2K3P5ZPNMQ","shard":1,"op":"upsert","key":{"id":2},"row":{"id":2,"v":1,"u":"AaIWtihBVm6tyFMdi/tWlw=="}}\n{"position":"01M8BBCA220XTVMFZ6KAT551QK","shard":1,"op":"upsert","key":{"id":3},"row":{"id":3,"v":1,"u":"AaIWtihCB3W6P+aatFKG8w=="}}\n{"position":"01M8BBCA220XTVMFZ6P7YCJVQK","shard":1,"op":"upsert","key":{"id":4},"row":{"id":4,"v":1,"u":"AaIWtihCB3W6P+ax/Mlu8w=="}}\n{"position":"01M8BBCA5QW0GJ997228NYZVZX","shard":1,"op":"upsert","key":{"id":5},"row":{"id":5,"v":1,"u":"AaIWtii34CEkpOISK+/v/Q=="}}','\n',char(10)));
CREATE TABLE texts (token VARCHAR(100) NOT NULL);
INSERT INTO texts VALUES('rf_vTYVm9VkrqpJsifIY7oEdMXR1lyXX_-9LhigUcHlhqo');
CREATE TABLE single (id BIGINT NOT NULL PRIMARY KEY, v INT NOT NULL);
INSERT INTO single VALUES(1,1);
INSERT INTO single VALUES(2,1);
INSERT INTO single VALUES(4,1);
INSERT INTO single VALUES(5,1);
INSERT INTO single VALUES(6,1);
CREATE TABLE IF NOT EXISTS "rowfeed_changes_single" (
  seq INTEGER PRIMARY KEY,
  "id" BIGINT NOT NULL COLLATE "BINARY",
  kind INTEGER NOT NULL DEFAULT 0,
  changed_at INTEGER NOT NULL DEFAULT (CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000)
);
INSERT INTO rowfeed_changes_single VALUES(1,6,0,1795677365734000);
CREATE TABLE IF NOT EXISTS "rowfeed_positions_single" (
  "id" BIGINT NOT NULL COLLATE "BINARY",
  feed_sync_id INTEGER NOT NULL,
  shard INTEGER NOT NULL,
  bucket INTEGER NOT NULL,
  deleted INTEGER NOT NULL,
  hidden INTEGER NOT NULL,
  published_at INTEGER NOT NULL,
  PRIMARY KEY ("id")
) WITHOUT ROWID;
INSERT INTO rowfeed_positions_single VALUES(1,1,0,0,0,0,1795677365655000);
INSERT INTO rowfeed_positions_single VALUES(2,2,0,0,0,0,1795677365655000);
INSERT INTO rowfeed_positions_single VALUES(3,5,0,0,1,0,1795677365732000);
INSERT INTO rowfeed_positions_single VALUES(4,4,0,0,0,0,1795677365655000);
INSERT INTO rowfeed_positions_single VALUES(5,6,0,0,0,0,1795677365732000);
CREATE TABLE composite (ns VARCHAR(50) NOT NULL, id VARCHAR(50) NOT NULL, v INT NOT NULL, PRIMARY KEY (ns, id));
INSERT INTO composite VALUES('ü','1',1);
INSERT INTO composite VALUES('ü','2',1);
INSERT INTO composite VALUES('ü','4',1);
INSERT INTO composite VALUES('ü','5',1);
INSERT INTO composite VALUES('ü','6',1);
CREATE TABLE IF NOT EXISTS "rowfeed_changes_composite" (
  seq INTEGER PRIMARY KEY,
  "ns" VARCHAR(50) NOT NULL COLLATE "BINARY",
  "id" VARCHAR(50) NOT NULL COLLATE "BINARY",
  kind INTEGER NOT NULL DEFAULT 0,
  changed_at INTEGER NOT NULL DEFAULT (CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000)
);
INSERT INTO rowfeed_changes_composite VALUES(1,'ü','6',0,1795677365869000);
CREATE TABLE IF NOT EXISTS "rowfeed_positions_composite" (
  "ns" VARCHAR(50) NOT NULL COLLATE "BINARY",
  "id" VARCHAR(50) NOT NULL COLLATE "BINARY",
  feed_sync_id INTEGER NOT NULL,
  shard INTEGER NOT NULL,
  bucket INTEGER NOT NULL,
  deleted INTEGER NOT NULL,
  hidden INTEGER NOT NULL,
  published_at INTEGER NOT NULL,
  PRIMARY KEY ("ns", "id")
) WITHOUT ROWID;
INSERT INTO rowfeed_positions_composite VALUES('ü','1',1,0,0,0,0,1795677365740000);
INSERT INTO rowfeed_positions_composite VALUES('ü','2',2,0,0,0,0,1795677365740000);
INSERT INTO rowfeed_positions_composite VALUES('ü','3',5,0,0,1,0,1795677365865000);
INSERT INTO rowfeed_positions_composite VALUES('ü','4',4,0,0,0,0,1795677365740000);
INSERT INTO rowfeed_positions_composite VALUES('ü','5',6,0,0,0,0,1795677365865000);
CREATE TABLE columned (id BIGINT NOT NULL PRIMARY KEY, v INT NOT NULL, "feed_sync_id" INTEGER, "shard" INTEGER NOT NULL DEFAULT 0);
INSERT INTO columned VALUES(1,1,1,0);
INSERT INTO columned VALUES(2,1,2,0);
INSERT INTO columned VALUES(4,1,4,0);
INSERT INTO columned VALUES(5,1,6,0);
INSERT INTO columned VALUES(6,1,NULL,0);
CREATE TABLE IF NOT EXISTS "rowfeed_changes_columned" (
  seq INTEGER PRIMARY KEY,
  "id" BIGINT NOT NULL COLLATE "BINARY",
  kind INTEGER NOT NULL DEFAULT 0,
  changed_at INTEGER NOT NULL DEFAULT (CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000)
);
CREATE TABLE IF NOT EXISTS "rowfeed_positions_columned" (
  "id" BIGINT NOT NULL COLLATE "BINARY",
  feed_sync_id INTEGER NOT NULL,
  shard INTEGER NOT NULL,
  bucket INTEGER NOT NULL,
  deleted INTEGER NOT NULL,
  hidden INTEGER NOT NULL,
  published_at INTEGER NOT NULL,
  PRIMARY KEY ("id")
) WITHOUT ROWID;
INSERT INTO rowfeed_positions_columned VALUES(3,5,0,0,1,0,1795677365996000);
CREATE TABLE sharded (id BIGINT NOT NULL PRIMARY KEY, v INT NOT NULL);
INSERT INTO sharded VALUES(1,1);
INSERT INTO sharded VALUES(2,1);
INSERT INTO sharded VALUES(4,1);
INSERT INTO sharded VALUES(5,1);
INSERT INTO sharded VALUES(6,1);
CREATE TABLE IF NOT EXISTS "rowfeed_changes_sharded" (
  seq INTEGER PRIMARY KEY,
  "id" BIGINT NOT NULL COLLATE "BINARY",
  kind INTEGER NOT NULL DEFAULT 0,
  changed_at INTEGER NOT NULL DEFAULT (CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000)
);
INSERT INTO rowfeed_changes_sharded VALUES(1,6,0,1795677366129000);
CREATE TABLE IF NOT EXISTS "rowfeed_positions_sharded" (
  "id" BIGINT NOT NULL COLLATE "BINARY",
  feed_sync_id INTEGER NOT NULL,
  shard INTEGER NOT NULL,
  bucket INTEGER NOT NULL,
  deleted INTEGER NOT NULL,
  hidden INTEGER NOT NULL,
  published_at INTEGER NOT NULL,
  PRIMARY KEY ("id")
) WITHOUT ROWID;
INSERT INTO rowfeed_positions_sharded VALUES(1,1,7,7,0,0,1795677366005000);
INSERT INTO rowfeed_positions_sharded VALUES(2,2,5,5,0,0,1795677366005000);
INSERT INTO rowfeed_positions_sharded VALUES(3,5,3,3,1,0,1795677366114000);
INSERT INTO rowfeed_positions_sharded VALUES(4,4,0,0,0,0,1795677366005000);
INSERT INTO rowfeed_positions_sharded VALUES(5,6,6,6,0,0,1795677366114000);
CREATE TABLE appended (id BIGINT NOT NULL PRIMARY KEY, v INT NOT NULL);
INSERT INTO appended VALUES(1,1);
INSERT INTO appended VALUES(2,1);
INSERT INTO appended VALUES(3,1);
INSERT INTO appended VALUES(4,1);
INSERT INTO appended VALUES(5,1);
INSERT INTO appended VALUES(6,1);
CREATE TABLE IF NOT EXISTS "rowfeed_outbox_appended" (
  order_sequence INTEGER PRIMARY KEY AUTOINCREMENT,
  shard INTEGER NOT NULL DEFAULT 0 CHECK (typeof(shard) = 'integer'),
  time_hint INTEGER CHECK (typeof(time_hint) IN ('integer', 'null')),
  appended_at INTEGER NOT NULL DEFAULT (CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000),
  "id" BIGINT NOT NULL COLLATE "BINARY"
);
INSERT INTO rowfeed_outbox_appended VALUES(6,1,NULL,1795677366246000,6);
CREATE TABLE IF NOT EXISTS "rowfeed_feed_appended" (
  shard INTEGER NOT NULL,
  ulid BLOB NOT NULL,
  "id" BIGINT NOT NULL COLLATE "BINARY",
  PRIMARY KEY (shard, ulid),
  UNIQUE ("id")
) WITHOUT ROWID;
INSERT INTO rowfeed_feed_appended VALUES(1,X'01a216b6277d7d9b1afdd633de36ec40',1);
INSERT INTO rowfeed_feed_appended VALUES(1,X'01a216b6277d7d9b1afdd633de36ec41',2);
INSERT INTO rowfeed_feed_appended VALUES(1,X'01a216b6277d7d9b1afdd633de36ec42',3);
INSERT INTO rowfeed_feed_appended VALUES(1,X'01a216b6277d7d9b1afdd633de36ec43',4);
INSERT INTO rowfeed_feed_appended VALUES(1,X'01a216b627e4d67ea6f9dea870502710',5);
CREATE TABLE captured (id BIGINT NOT NULL PRIMARY KEY, v INT NOT NULL);
INSERT INTO captured VALUES(1,1);
INSERT INTO captured VALUES(2,1);
INSERT INTO captured VALUES(3,1);
INSERT INTO captured VALUES(4,1);
INSERT INTO captured VALUES(5,1);
INSERT INTO captured VALUES(6,1);
CREATE TABLE IF NOT EXISTS "rowfeed_outbox_captured" (
  order_sequence INTEGER PRIMARY KEY AUTOINCREMENT,
  shard INTEGER NOT NULL DEFAULT 0 CHECK (typeof(shard) = 'integer'),
  time_hint INTEGER CHECK (typeof(time_hint) IN ('integer', 'null')),
  appended_at INTEGER NOT NULL DEFAULT (CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000),
  "id" BIGINT NOT NULL COLLATE "BINARY"
);
INSERT INTO rowfeed_outbox_captured VALUES(6,1,NULL,1795677366333000,6);
CREATE TABLE IF NOT EXISTS "rowfeed_feed_captured" (
  shard INTEGER NOT NULL,
  ulid BLOB NOT NULL,
  "id" BIGINT NOT NULL COLLATE "BINARY",
  PRIMARY KEY (shard, ulid),
  UNIQUE ("id")
) WITHOUT ROWID;
INSERT INTO rowfeed_feed_captured VALUES(1,X'01a216b627ec2ed3181a50371fb72ebf',1);
INSERT INTO rowfeed_feed_captured VALUES(1,X'01a216b627ec2ed3181a50371fb72ec0',2);
INSERT INTO rowfeed_feed_captured VALUES(1,X'01a216b627ec2ed3181a50371fb72ec1',3);
INSERT INTO rowfeed_feed_captured VALUES(1,X'01a216b627ec2ed3181a50371fb72ec2',4);
INSERT INTO rowfeed_feed_captured VALUES(1,X'01a216b6283c39a289644ee38de2a09f',5);
CREATE TABLE blocking (id BIGINT NOT NULL PRIMARY KEY, v INT NOT NULL, u BLOB NOT NULL);
INSERT INTO blocking VALUES(1,1,X'01a216b62841566eadc8530643846e97');
INSERT INTO blocking VALUES(2,1,X'01a216b62841566eadc8531d8bfb5697');
INSERT INTO blocking VALUES(3,1,X'01a216b628420775ba3fe69ab45286f3');
INSERT INTO blocking VALUES(4,1,X'01a216b628420775ba3fe6b1fcc96ef3');
INSERT INTO blocking VALUES(5,1,X'01a216b628b7e02124a4e2122befeffd');
INSERT INTO blocking VALUES(6,1,X'01a216b628ba3a5f353ccf389b4d851a');
DELETE FROM sqlite_sequence;
INSERT INTO sqlite_sequence VALUES('rowfeed_outbox_appended',6);
INSERT INTO sqlite_sequence VALUES('rowfeed_outbox_captured',6);
CREATE INDEX "rowfeed_dead_letters_first" ON "rowfeed_dead_letters" (consumer, feed, shard, first_at, key_digest);
CREATE UNIQUE INDEX "rowfeed_single_position" ON "rowfeed_positions_single" (feed_sync_id);
CREATE INDEX "rowfeed_single_deleted" ON "rowfeed_positions_single" (feed_sync_id) WHERE deleted = 1;
CREATE TRIGGER "rowfeed_single_insert" AFTER INSERT ON "single"
BEGIN
  INSERT INTO "rowfeed_changes_single" ("id") VALUES (NEW."id");
END;
CREATE TRIGGER "rowfeed_single_update" AFTER UPDATE ON "single"
BEGIN
  INSERT INTO "rowfeed_changes_single" ("id") SELECT OLD."id" WHERE OLD."id" COLLATE "BINARY" IS NOT NEW."id";
  INSERT INTO "rowfeed_changes_single" ("id") VALUES (NEW."id");
END;
CREATE TRIGGER "rowfeed_single_delete" AFTER DELETE ON "single"
BEGIN
  INSERT INTO "rowfeed_changes_single" ("id") VALUES (OLD."id");
END;
CREATE TRIGGER "rowfeed_single_insert_replace" BEFORE INSERT ON "single"
BEGIN
  INSERT INTO "rowfeed_changes_single" ("id") SELECT r."id" FROM "single" r WHERE r.rowid = NEW.rowid;
END;
CREATE TRIGGER "rowfeed_single_update_replace" BEFORE UPDATE ON "single"
BEGIN
  INSERT INTO "rowfeed_changes_single" ("id") SELECT r."id" FROM "single" r WHERE r.rowid = NEW.rowid AND NOT (r."id" COLLATE "BINARY" IS OLD."id");
END;
CREATE UNIQUE INDEX "rowfeed_composite_position" ON "rowfeed_positions_composite" (feed_sync_id);
CREATE INDEX "rowfeed_composite_deleted" ON "rowfeed_positions_composite" (feed_sync_id) WHERE deleted = 1;
CREATE TRIGGER "rowfeed_composite_insert" AFTER INSERT ON "composite"
BEGIN
  INSERT INTO "rowfeed_changes_composite" ("ns", "id") VALUES (NEW."ns", NEW."id");
END;
CREATE TRIGGER "rowfeed_composite_update" AFTER UPDATE ON "composite"
BEGIN
  INSERT INTO "rowfeed_changes_composite" ("ns", "id") SELECT OLD."ns", OLD."id" WHERE OLD."ns" COLLATE "BINARY" IS NOT NEW."ns" OR OLD."id" COLLATE "BINARY" IS NOT NEW."id";
  INSERT INTO "rowfeed_changes_composite" ("ns", "id") VALUES (NEW."ns", NEW."id");
END;
CREATE TRIGGER "rowfeed_composite_delete" AFTER DELETE ON "composite"
BEGIN
  INSERT INTO "rowfeed_changes_composite" ("ns", "id") VALUES (OLD."ns", OLD."id");
END;
CREATE TRIGGER "rowfeed_composite_insert_replace" BEFORE INSERT ON "composite"
BEGIN
  INSERT INTO "rowfeed_changes_composite" ("ns", "id") SELECT r."ns", r."id" FROM "composite" r WHERE r.rowid = NEW.rowid;
END;
CREATE TRIGGER "rowfeed_composite_update_replace" BEFORE UPDATE ON "composite"
BEGIN
  INSERT INTO "rowfeed_changes_composite" ("ns", "id") SELECT r."ns", r."id" FROM "composite" r WHERE r.rowid = NEW.rowid AND NOT (r."ns" COLLATE "BINARY" IS OLD."ns" AND r."id" COLLATE "BINARY" IS OLD."id");
END;
CREATE UNIQUE INDEX "rowfeed_columned_position" ON "rowfeed_positions_columned" (feed_sync_id);
CREATE INDEX "rowfeed_columned_deleted" ON "rowfeed_positions_columned" (feed_sync_id) WHERE deleted = 1;
CREATE INDEX "rowfeed_columned_row_position" ON "columned" (feed_sync_id, shard) WHERE feed_sync_id IS NOT NULL;
CREATE INDEX "rowfeed_columned_row_waiting" ON "columned" ("id" COLLATE "BINARY") WHERE feed_sync_id IS NULL;
CREATE UNIQUE INDEX "rowfeed_sharded_position" ON "rowfeed_positions_sharded" (feed_sync_id);
CREATE INDEX "rowfeed_sharded_deleted" ON "rowfeed_positions_sharded" (feed_sync_id) WHERE deleted = 1;
CREATE INDEX "rowfeed_sharded_bucket" ON "rowfeed_positions_sharded" (bucket, feed_sync_id, shard, deleted, hidden);
CREATE TRIGGER "rowfeed_sharded_insert" AFTER INSERT ON "sharded"
BEGIN
  INSERT INTO "rowfeed_changes_sharded" ("id") VALUES (NEW."id");
END;
CREATE TRIGGER "rowfeed_sharded_update" AFTER UPDATE ON "sharded"
BEGIN
  INSERT INTO "rowfeed_changes_sharded" ("id") SELECT OLD."id" WHERE OLD."id" COLLATE "BINARY" IS NOT NEW."id";
  INSERT INTO "rowfeed_changes_sharded" ("id") VALUES (NEW."id");
END;
CREATE TRIGGER "rowfeed_sharded_delete" AFTER DELETE ON "sharded"
BEGIN
  INSERT INTO "rowfeed_changes_sharded" ("id") VALUES (OLD."id");
END;
CREATE TRIGGER "rowfeed_sharded_insert_replace" BEFORE INSERT ON "sharded"
BEGIN
  INSERT INTO "rowfeed_changes_sharded" ("id") SELECT r."id" FROM "sharded" r WHERE r.rowid = NEW.rowid;
END;
CREATE TRIGGER "rowfeed_sharded_update_replace" BEFORE UPDATE ON "sharded"
BEGIN
  INSERT INTO "rowfeed_changes_sharded" ("id") SELECT r."id" FROM "sharded" r WHERE r.rowid = NEW.rowid AND NOT (r."id" COLLATE "BINARY" IS OLD."id");
END;
CREATE INDEX "rowfeed_appended_outbox" ON "rowfeed_outbox_appended" (shard, order_sequence);
CREATE INDEX "rowfeed_captured_outbox" ON "rowfeed_outbox_captured" (shard, order_sequence);
CREATE TRIGGER "rowfeed_captured_insert" AFTER INSERT ON "captured"
BEGIN
  INSERT INTO "rowfeed_outbox_captured" (shard, "id") VALUES (CASE typeof(NEW."v") WHEN 'integer' THEN NEW."v" ELSE RAISE(ABORT, 'rowfeed: column "v" of table "captured", a row''s shard in feed "captured", holds no integer') END, NEW."id");
END;
CREATE TRIGGER "rowfeed_captured_update" AFTER UPDATE ON "captured" WHEN OLD."id" COLLATE "BINARY" IS NOT NEW."id"
BEGIN
  INSERT INTO "rowfeed_outbox_captured" (shard, "id") VALUES (CASE typeof(NEW."v") WHEN 'integer' THEN NEW."v" ELSE RAISE(ABORT, 'rowfeed: column "v" of table "captured", a row''s shard in feed "captured", holds no integer') END, NEW."id");
END;
CREATE UNIQUE INDEX blocking_feed ON blocking (v, u);
COMMIT;
