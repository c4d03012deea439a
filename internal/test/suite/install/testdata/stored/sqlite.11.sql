PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE IF NOT EXISTS "rowfeed_schema_version" (
  version INTEGER PRIMARY KEY,
  applied_at INTEGER NOT NULL
);
INSERT INTO rowfeed_schema_version VALUES(1,1795703240057000);
INSERT INTO rowfeed_schema_version VALUES(2,1795703240059000);
INSERT INTO rowfeed_schema_version VALUES(3,1795703240059000);
INSERT INTO rowfeed_schema_version VALUES(4,1795703240059000);
INSERT INTO rowfeed_schema_version VALUES(5,1795703240059000);
INSERT INTO rowfeed_schema_version VALUES(6,1795703240059000);
INSERT INTO rowfeed_schema_version VALUES(7,1795703240059000);
INSERT INTO rowfeed_schema_version VALUES(8,1795703240059000);
INSERT INTO rowfeed_schema_version VALUES(9,1795703240059000);
INSERT INTO rowfeed_schema_version VALUES(10,1795703240060000);
INSERT INTO rowfeed_schema_version VALUES(11,1795703240062000);
CREATE TABLE IF NOT EXISTS "rowfeed_sequences" (
  name TEXT NOT NULL PRIMARY KEY,
  value INTEGER NOT NULL,
  version INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
, term bigint);
INSERT INTO rowfeed_sequences VALUES('single',6,2,1795703240216000,54892279772314);
INSERT INTO rowfeed_sequences VALUES('composite',6,2,1795703240434000,43524256558250);
INSERT INTO rowfeed_sequences VALUES('columned',6,2,1795703240548000,151833731684704);
INSERT INTO rowfeed_sequences VALUES('sharded',6,2,1795703240651000,140188502077235);
INSERT INTO rowfeed_sequences VALUES('appended',0,0,1795703240693000,NULL);
INSERT INTO rowfeed_sequences VALUES('captured',0,0,1795703240888000,NULL);
INSERT INTO rowfeed_sequences VALUES('blocking',0,0,1795703241046000,NULL);
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
INSERT INTO rowfeed_feeds VALUES('single','sequence','trigger','active',1,NULL,'single','[{"name":"id","type":"BIGINT","decl":"BIGINT","kind":"dynamic","stored":"id","collate":" COLLATE \"BINARY\"","exact":true}]',NULL,'{"primary_key":true}',1,NULL,2592000,0,NULL,NULL,1795703240084000,NULL,NULL,NULL,NULL);
INSERT INTO rowfeed_feeds VALUES('composite','sequence','trigger','active',1,NULL,'composite','[{"name":"ns","type":"VARCHAR(50)","decl":"VARCHAR(50)","kind":"dynamic","stored":"ns","collate":" COLLATE \"BINARY\"","exact":true},{"name":"id","type":"VARCHAR(50)","decl":"VARCHAR(50)","kind":"dynamic","stored":"id","collate":" COLLATE \"BINARY\"","exact":true}]',NULL,'{"primary_key":true}',1,NULL,2592000,0,NULL,NULL,1795703240225000,NULL,NULL,NULL,NULL);
INSERT INTO rowfeed_feeds VALUES('columned','sequence','column','active',1,NULL,'columned','[{"name":"id","type":"BIGINT","decl":"BIGINT","kind":"dynamic","stored":"id","collate":" COLLATE \"BINARY\"","exact":true}]',NULL,'{"primary_key":true,"added":["feed_sync_id","shard"]}',1,NULL,2592000,0,NULL,NULL,1795703240445000,NULL,NULL,NULL,NULL);
INSERT INTO rowfeed_feeds VALUES('sharded','sequence','trigger','active',1,NULL,'sharded','[{"name":"id","type":"BIGINT","decl":"BIGINT","kind":"dynamic","stored":"id","collate":" COLLATE \"BINARY\"","exact":true}]',NULL,'{"primary_key":true}',8,NULL,2592000,0,NULL,NULL,1795703240553000,NULL,NULL,NULL,NULL);
INSERT INTO rowfeed_feeds VALUES('appended','outbox','app','active',1,NULL,'appended','[{"name":"id","type":"BIGINT","decl":"BIGINT","kind":"dynamic","stored":"id","collate":" COLLATE \"BINARY\"","exact":true}]',NULL,'{"primary_key":true,"ulids":{"Position":{"name":"ulid","type":"BLOB","decl":"BLOB","kind":"binary"},"Shard":{"name":"shard","type":"bigint","kind":"integer"},"Index":"place"},"runs":1}',1,NULL,0,0,NULL,NULL,1795703240693000,NULL,NULL,NULL,NULL);
INSERT INTO rowfeed_feeds VALUES('captured','outbox','trigger','active',1,NULL,'captured','[{"name":"id","type":"BIGINT","decl":"BIGINT","kind":"dynamic","stored":"id","collate":" COLLATE \"BINARY\"","exact":true}]',NULL,'{"primary_key":true,"ulids":{"Position":{"name":"ulid","type":"BLOB","decl":"BLOB","kind":"binary"},"Shard":{"name":"shard","type":"bigint","kind":"integer"},"Index":"place"},"runs":1}',1,'v',0,0,NULL,NULL,1795703240888000,NULL,NULL,NULL,NULL);
INSERT INTO rowfeed_feeds VALUES('blocking','blocking','none','active',1,NULL,'blocking','[{"name":"id","type":"BIGINT","decl":"BIGINT","kind":"dynamic","stored":"id","collate":" COLLATE \"BINARY\"","exact":true}]',NULL,'{"primary_key":true,"ulids":{"Position":{"name":"u","type":"BLOB","decl":"BLOB","kind":"binary","collate":" COLLATE \"BINARY\""},"Shard":{"name":"v","type":"INT","decl":"INT","kind":"dynamic","collate":" COLLATE \"BINARY\"","exact":true},"Index":"blocking_feed"}}',1,'v',0,0,NULL,NULL,1795703241046000,NULL,NULL,NULL,NULL);
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
INSERT INTO rowfeed_cursors VALUES('app','single',0,1,'4.1htiddcd4q',1,0,6,0,1,1795703240210000,NULL,NULL,NULL,NULL,NULL);
INSERT INTO rowfeed_cursors VALUES('app','composite',0,1,'4.17in3tjr5a',1,0,6,0,1,1795703240424000,NULL,NULL,NULL,NULL,NULL);
INSERT INTO rowfeed_cursors VALUES('app','columned',0,1,'4.4a2u5q8mb0',1,0,6,0,1,1795703240545000,NULL,NULL,NULL,NULL,NULL);
INSERT INTO rowfeed_cursors VALUES('app','sharded',0,1,'4.3vg0mtsbpj',1,0,6,0,1,1795703240647000,NULL,NULL,NULL,NULL,NULL);
INSERT INTO rowfeed_cursors VALUES('halves','sharded',0,2,'6.3vg0mtsbpj',1,0,3,0,0,1795703240666000,NULL,NULL,NULL,NULL,NULL);
INSERT INTO rowfeed_cursors VALUES('halves','sharded',1,2,'6.3vg0mtsbpj',1,0,1,0,0,1795703240667000,NULL,NULL,NULL,NULL,NULL);
INSERT INTO rowfeed_cursors VALUES('paused','sharded',0,1,'6.3vg0mtsbpj',1,0,7,1,0,1795703240685000,NULL,NULL,NULL,NULL,NULL);
INSERT INTO rowfeed_cursors VALUES('app','appended',1,1,'01M8C41Y06D9F872J10TFN4N7F',1,0,4,0,1,1795703240879000,NULL,NULL,NULL,NULL,NULL);
INSERT INTO rowfeed_cursors VALUES('app','captured',1,1,'01M8C41Y60TK5AGBXJKWTZE6EK',1,0,4,0,1,1795703241029000,NULL,NULL,NULL,NULL,NULL);
INSERT INTO rowfeed_cursors VALUES('app','blocking',1,1,'01M8C41YAZCQ9AB69ZB5DNTBK5',1,0,4,0,1,1795703241217000,NULL,NULL,NULL,NULL,NULL);
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
INSERT INTO rowfeed_dead_letters VALUES('app','single',0,'9e7e65453739bbc64ba155eed18a37bd5fb1196c7f29ded1da660b94414d7ad8','{"id":2}',1,'2','upsert','aside',2,0,'the handler fails for this row',1795703240204000,1795703240204000,0);
INSERT INTO rowfeed_dead_letters VALUES('app','composite',0,'c1a6bcd0cdf9d1276383bca80fe614acacefc699915ad049916febfc1bdaf635','{"ns":"ü","id":"2"}',1,'2','upsert','aside',2,0,'the handler fails for this row',1795703240415000,1795703240415000,0);
INSERT INTO rowfeed_dead_letters VALUES('app','columned',0,'9e7e65453739bbc64ba155eed18a37bd5fb1196c7f29ded1da660b94414d7ad8','{"id":2}',1,'2','upsert','aside',2,0,'the handler fails for this row',1795703240541000,1795703240541000,0);
INSERT INTO rowfeed_dead_letters VALUES('app','sharded',0,'9e7e65453739bbc64ba155eed18a37bd5fb1196c7f29ded1da660b94414d7ad8','{"id":2}',1,'2','upsert','aside',2,0,'the handler fails for this row',1795703240641000,1795703240641000,5);
INSERT INTO rowfeed_dead_letters VALUES('app','appended',1,'9e7e65453739bbc64ba155eed18a37bd5fb1196c7f29ded1da660b94414d7ad8','{"id":2}',1,'01M8C41Y06D9F872J10TFN4N7D','upsert','aside',2,0,'the handler fails for this row',1795703240875000,1795703240875000,1);
INSERT INTO rowfeed_dead_letters VALUES('app','captured',1,'9e7e65453739bbc64ba155eed18a37bd5fb1196c7f29ded1da660b94414d7ad8','{"id":2}',1,'01M8C41Y60TK5AGBXJKWTZE6EH','upsert','aside',2,0,'the handler fails for this row',1795703241025000,1795703241025000,1);
INSERT INTO rowfeed_dead_letters VALUES('app','blocking',1,'9e7e65453739bbc64ba155eed18a37bd5fb1196c7f29ded1da660b94414d7ad8','{"id":2}',1,'01M8C41YAVKDM2SRHE8YY34XFS','upsert','aside',2,0,'the handler fails for this row',1795703241210000,1795703241210000,1);
CREATE TABLE IF NOT EXISTS "rowfeed_processed" (
  consumer TEXT NOT NULL,
  feed TEXT NOT NULL,
  generation INTEGER NOT NULL,
  shard INTEGER NOT NULL,
  position TEXT NOT NULL,
  processed_at INTEGER NOT NULL,
  PRIMARY KEY (consumer, feed, generation, shard, position)
) WITHOUT ROWID;
INSERT INTO rowfeed_processed VALUES('marks','sharded',1,7,'00000000000000000011j15qusd3c0',1795703240686000);
CREATE TABLE IF NOT EXISTS "rowfeed_leases" (
  name TEXT NOT NULL PRIMARY KEY,
  owner TEXT NOT NULL,
  epoch INTEGER NOT NULL,
  expires_at INTEGER,
  acquired_at INTEGER NOT NULL,
  renewals INTEGER NOT NULL
);
INSERT INTO rowfeed_leases VALUES('stored','vm/9324/ptl3amhx44fixcp4k5l6y6a7bi',1,1795706841224000,1795703241224000,0);
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
INSERT INTO rowfeed_shards VALUES('appended',1,1795703240881,117683207594437274,280547995786511621,0,0,'',1795703240710,0);
INSERT INTO rowfeed_shards VALUES('captured',1,1795703241035,117683207604525815,1584452864648406643,0,0,'',1795703240896,0);
INSERT INTO rowfeed_shards VALUES('blocking',1,1795703241221,117683207616685313,-7404048215942989656,0,0,'GVAY_s6tjmJPkta_ 0whuSm-oXuX0fbpL DgxuOOGQmNBhR2mt Ngdru2r7uo-Q4I2H 1rWcHk34J5xdYQbq zQuprxs2-Ao_72xD',0,0);
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
INSERT INTO rowfeed_tokens VALUES('stored','89d03f0859a6a8902b6c778bf471c9a35f46d56839b55f5773bdeac9c889ce82','[{"right":"read","feed":"single"}]','{}',1795703241226000,NULL,NULL);
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
INSERT INTO rowfeed_audit VALUES(1,'7vbs47szigmkjvdlr4uzdx6bp4',1795703241223000,'ü@stored','consumer pause','consumer paused','one feed','done');
CREATE TABLE IF NOT EXISTS "rowfeed_terms" (
  feed TEXT NOT NULL,
  term bigint NOT NULL,
  upto bigint NOT NULL,
  ended_at bigint NOT NULL,
  PRIMARY KEY (feed, term)
);
INSERT INTO rowfeed_terms VALUES('single',203187752904185,0,1795703240104000);
INSERT INTO rowfeed_terms VALUES('composite',131436756174179,0,1795703240240000);
INSERT INTO rowfeed_terms VALUES('columned',175784533278338,0,1795703240461000);
INSERT INTO rowfeed_terms VALUES('sharded',143291615190799,0,1795703240560000);
CREATE TABLE saved (feed VARCHAR(50) NOT NULL PRIMARY KEY, after VARCHAR(100) NOT NULL, entries TEXT);
INSERT INTO saved VALUES('single','4.1htiddcd4q',replace('{"position":"1","shard":0,"op":"upsert","key":{"id":1},"row":{"id":1,"v":1}}\n{"position":"2","shard":0,"op":"upsert","key":{"id":2},"row":{"id":2,"v":1}}\n{"position":"4","shard":0,"op":"upsert","key":{"id":4},"row":{"id":4,"v":1}}\n{"position":"6","shard":0,"op":"upsert","key":{"id":5},"row":{"id":5,"v":1}}','\n',char(10)));
INSERT INTO saved VALUES('composite','4.17in3tjr5a',replace('{"position":"1","shard":0,"op":"upsert","key":{"ns":"ü","id":"1"},"row":{"ns":"ü","id":"1","v":1}}\n{"position":"2","shard":0,"op":"upsert","key":{"ns":"ü","id":"2"},"row":{"ns":"ü","id":"2","v":1}}\n{"position":"4","shard":0,"op":"upsert","key":{"ns":"ü","id":"4"},"row":{"ns":"ü","id":"4","v":1}}\n{"position":"6","shard":0,"op":"upsert","key":{"ns":"ü","id":"5"},"row":{"ns":"ü","id":"5","v":1}}','\n',char(10)));
INSERT INTO saved VALUES('columned','4.4a2u5q8mb0',replace('{"position":"1","shard":0,"op":"upsert","key":{"id":1},"row":{"id":1,"v":1}}\n{"position":"2","shard":0,"op":"upsert","key":{"id":2},"row":{"id":2,"v":1}}\n{"position":"4","shard":0,"op":"upsert","key":{"id":4},"row":{"id":4,"v":1}}\n{"position":"6","shard":0,"op":"upsert","key":{"id":5},"row":{"id":5,"v":1}}','\n',char(10)));
INSERT INTO saved VALUES('sharded','4.3vg0mtsbpj',replace('{"position":"1","shard":7,"op":"upsert","key":{"id":1},"row":{"id":1,"v":1}}\n{"position":"2","shard":5,"op":"upsert","key":{"id":2},"row":{"id":2,"v":1}}\n{"position":"4","shard":0,"op":"upsert","key":{"id":4},"row":{"id":4,"v":1}}\n{"position":"6","shard":6,"op":"upsert","key":{"id":5},"row":{"id":5,"v":1}}','\n',char(10)));
INSERT INTO saved VALUES('appended','01M8C41Y06D9F872J10TFN4N7F',replace('{"position":"01M8C41Y06D9F872J10TFN4N7C","shard":1,"op":"upsert","key":{"id":1},"row":{"id":1,"v":1}}\n{"position":"01M8C41Y06D9F872J10TFN4N7D","shard":1,"op":"upsert","key":{"id":2},"row":{"id":2,"v":1}}\n{"position":"01M8C41Y06D9F872J10TFN4N7E","shard":1,"op":"upsert","key":{"id":3},"row":{"id":3,"v":1}}\n{"position":"01M8C41Y06D9F872J10TFN4N7F","shard":1,"op":"upsert","key":{"id":4},"row":{"id":4,"v":1}}\n{"position":"01M8C41Y5HXAD07S5MX9QMV184","shard":1,"op":"upsert","key":{"id":5},"row":{"id":5,"v":1}}','\n',char(10)));
INSERT INTO saved VALUES('captured','01M8C41Y60TK5AGBXJKWTZE6EK',replace('{"position":"01M8C41Y60TK5AGBXJKWTZE6EG","shard":1,"op":"upsert","key":{"id":1},"row":{"id":1,"v":1}}\n{"position":"01M8C41Y60TK5AGBXJKWTZE6EH","shard":1,"op":"upsert","key":{"id":2},"row":{"id":2,"v":1}}\n{"position":"01M8C41Y60TK5AGBXJKWTZE6EJ","shard":1,"op":"upsert","key":{"id":3},"row":{"id":3,"v":1}}\n{"position":"01M8C41Y60TK5AGBXJKWTZE6EK","shard":1,"op":"upsert","key":{"id":4},"row":{"id":4,"v":1}}\n{"position":"01M8C41YABVBVHBZ8VFH8BFSKJ","shard":1,"op":"upsert","key":{"id":5},"row":{"id":5,"v":1}}','\n',char(10)));
INSERT INTO saved VALUES('blocking','01M8C41YAZCQ9AB69ZB5DNTBK5',replace('{"position":"01M8C41YATB7Z1Y8D04S9EJGXC","shard":1,"op":"upsert","key":{"id":1},"row":{"id":1,"v":1,"u":"AaIYQPlaWf4fIaAmUulDrA=="}}\n{"position":"01M8C41YAVKDM2SRHE8YY34XFS","shard":1,"op":"upsert","key":{"id":2},"row":{"id":2,"v":1,"u":"AaIYQPlbm2gs4i5HvDJ1+Q=="}}\n{"position":"01M8C41YAYNA2TE0DC9TVNZQ70","shard":1,"op":"upsert","key":{"id":3},"row":{"id":3,"v":1,"u":"AaIYQPleqoWnAaxOt1/c4A=="}}\n{"position":"01M8C41YAZCQ9AB69ZB5DNTBK5","shard":1,"op":"upsert","key":{"id":4},"row":{"id":4,"v":1,"u":"AaIYQPlfZdKlmT9ZW10uZQ=="}}\n{"position":"01M8C41YG3XC9T971AGZ3GVV1T","shard":1,"op":"upsert","key":{"id":5},"row":{"id":5,"v":1,"u":"AaIYQPoD6xOknCqHxw3sOg=="}}','\n',char(10)));
CREATE TABLE texts (token VARCHAR(100) NOT NULL);
INSERT INTO texts VALUES('rf_LgS3oNjcOzzDmRQ2ZxQIYZ-qrMeyJivke2laTz4VpZs');
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
INSERT INTO rowfeed_changes_single VALUES(1,6,0,1795703240219000);
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
INSERT INTO rowfeed_positions_single VALUES(1,1,0,0,0,0,1795703240104000);
INSERT INTO rowfeed_positions_single VALUES(2,2,0,0,0,0,1795703240104000);
INSERT INTO rowfeed_positions_single VALUES(3,5,0,0,1,0,1795703240216000);
INSERT INTO rowfeed_positions_single VALUES(4,4,0,0,0,0,1795703240104000);
INSERT INTO rowfeed_positions_single VALUES(5,6,0,0,0,0,1795703240216000);
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
INSERT INTO rowfeed_changes_composite VALUES(1,'ü','6',0,1795703240440000);
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
INSERT INTO rowfeed_positions_composite VALUES('ü','1',1,0,0,0,0,1795703240240000);
INSERT INTO rowfeed_positions_composite VALUES('ü','2',2,0,0,0,0,1795703240240000);
INSERT INTO rowfeed_positions_composite VALUES('ü','3',5,0,0,1,0,1795703240434000);
INSERT INTO rowfeed_positions_composite VALUES('ü','4',4,0,0,0,0,1795703240240000);
INSERT INTO rowfeed_positions_composite VALUES('ü','5',6,0,0,0,0,1795703240434000);
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
INSERT INTO rowfeed_positions_columned VALUES(3,5,0,0,1,0,1795703240548000);
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
INSERT INTO rowfeed_changes_sharded VALUES(1,6,0,1795703240686000);
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
INSERT INTO rowfeed_positions_sharded VALUES(1,1,7,7,0,0,1795703240560000);
INSERT INTO rowfeed_positions_sharded VALUES(2,2,5,5,0,0,1795703240560000);
INSERT INTO rowfeed_positions_sharded VALUES(3,5,3,3,1,0,1795703240651000);
INSERT INTO rowfeed_positions_sharded VALUES(4,4,0,0,0,0,1795703240560000);
INSERT INTO rowfeed_positions_sharded VALUES(5,6,6,6,0,0,1795703240651000);
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
INSERT INTO rowfeed_outbox_appended VALUES(6,1,NULL,1795703240886000,6);
CREATE TABLE IF NOT EXISTS "rowfeed_feed_appended" (
  shard INTEGER NOT NULL,
  ulid BLOB NOT NULL,
  "id" BIGINT NOT NULL COLLATE "BINARY",
  PRIMARY KEY (shard, ulid),
  UNIQUE ("id")
) WITHOUT ROWID;
INSERT INTO rowfeed_feed_appended VALUES(1,X'01a21840f8066a5e838a41069f5254ec',1);
INSERT INTO rowfeed_feed_appended VALUES(1,X'01a21840f8066a5e838a41069f5254ed',2);
INSERT INTO rowfeed_feed_appended VALUES(1,X'01a21840f8066a5e838a41069f5254ee',3);
INSERT INTO rowfeed_feed_appended VALUES(1,X'01a21840f8066a5e838a41069f5254ef',4);
INSERT INTO rowfeed_feed_appended VALUES(1,X'01a21840f8b1ea9a03e4b4ea6f4d8504',5);
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
INSERT INTO rowfeed_outbox_captured VALUES(6,1,NULL,1795703241043000,6);
CREATE TABLE IF NOT EXISTS "rowfeed_feed_captured" (
  shard INTEGER NOT NULL,
  ulid BLOB NOT NULL,
  "id" BIGINT NOT NULL COLLATE "BINARY",
  PRIMARY KEY (shard, ulid),
  UNIQUE ("id")
) WITHOUT ROWID;
INSERT INTO rowfeed_feed_captured VALUES(1,X'01a21840f8c0d4caa82fb29f35f719d0',1);
INSERT INTO rowfeed_feed_captured VALUES(1,X'01a21840f8c0d4caa82fb29f35f719d1',2);
INSERT INTO rowfeed_feed_captured VALUES(1,X'01a21840f8c0d4caa82fb29f35f719d2',3);
INSERT INTO rowfeed_feed_captured VALUES(1,X'01a21840f8c0d4caa82fb29f35f719d3',4);
INSERT INTO rowfeed_feed_captured VALUES(1,X'01a21840f94bdaf715fd1b7c50b7e672',5);
CREATE TABLE blocking (id BIGINT NOT NULL PRIMARY KEY, v INT NOT NULL, u BLOB NOT NULL);
INSERT INTO blocking VALUES(1,1,X'01a21840f95a59fe1f21a02652e943ac');
INSERT INTO blocking VALUES(2,1,X'01a21840f95b9b682ce22e47bc3275f9');
INSERT INTO blocking VALUES(3,1,X'01a21840f95eaa85a701ac4eb75fdce0');
INSERT INTO blocking VALUES(4,1,X'01a21840f95f65d2a5993f595b5d2e65');
INSERT INTO blocking VALUES(5,1,X'01a21840fa03eb13a49c2a87c70dec3a');
INSERT INTO blocking VALUES(6,1,X'01a21840fa056501993f8948f46390a8');
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
