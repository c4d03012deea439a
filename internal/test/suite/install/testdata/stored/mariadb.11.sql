/*M!999999\- enable the sandbox mode */ 

/*!40101 SET @OLD_CHARACTER_SET_CLIENT=@@CHARACTER_SET_CLIENT */;
/*!40101 SET @OLD_CHARACTER_SET_RESULTS=@@CHARACTER_SET_RESULTS */;
/*!40101 SET @OLD_COLLATION_CONNECTION=@@COLLATION_CONNECTION */;
/*!40101 SET NAMES utf8mb4 */;
/*!40103 SET @OLD_TIME_ZONE=@@TIME_ZONE */;
/*!40103 SET TIME_ZONE='+00:00' */;
/*!40014 SET @OLD_UNIQUE_CHECKS=@@UNIQUE_CHECKS, UNIQUE_CHECKS=0 */;
/*!40014 SET @OLD_FOREIGN_KEY_CHECKS=@@FOREIGN_KEY_CHECKS, FOREIGN_KEY_CHECKS=0 */;
/*!40101 SET @OLD_SQL_MODE=@@SQL_MODE, SQL_MODE='NO_AUTO_VALUE_ON_ZERO' */;
/*!40111 SET @OLD_SQL_NOTES=@@SQL_NOTES, SQL_NOTES=0 */;
DROP TABLE IF EXISTS `appended`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `appended` (
  `id` bigint(20) NOT NULL,
  `v` int(11) NOT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `appended` WRITE;
/*!40000 ALTER TABLE `appended` DISABLE KEYS */;
INSERT INTO `appended` VALUES (1,1);
INSERT INTO `appended` VALUES (2,1);
INSERT INTO `appended` VALUES (3,1);
INSERT INTO `appended` VALUES (4,1);
INSERT INTO `appended` VALUES (5,1);
INSERT INTO `appended` VALUES (6,1);
/*!40000 ALTER TABLE `appended` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `blocking`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `blocking` (
  `id` bigint(20) NOT NULL,
  `v` int(11) NOT NULL,
  `u` binary(16) NOT NULL,
  PRIMARY KEY (`id`),
  UNIQUE KEY `blocking_feed` (`v`,`u`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `blocking` WRITE;
/*!40000 ALTER TABLE `blocking` DISABLE KEYS */;
INSERT INTO `blocking` VALUES (1,1,'¢A∂€\0!}ÄÌ\'«\"');
INSERT INTO `blocking` VALUES (2,1,'¢A∏,∞\0#:L≈£');
INSERT INTO `blocking` VALUES (3,1,'¢AæÏjiÑ¯˙5ô¥');
INSERT INTO `blocking` VALUES (4,1,'¢AøÛ?Õ√ÊÜ”Ö');
INSERT INTO `blocking` VALUES (5,1,'¢A gC√ê‘$¨Ä6kF');
INSERT INTO `blocking` VALUES (6,1,'¢A w-:/?Ë\"/»L ');
/*!40000 ALTER TABLE `blocking` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `captured`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `captured` (
  `id` bigint(20) NOT NULL,
  `v` int(11) NOT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `captured` WRITE;
/*!40000 ALTER TABLE `captured` DISABLE KEYS */;
INSERT INTO `captured` VALUES (1,1);
INSERT INTO `captured` VALUES (2,1);
INSERT INTO `captured` VALUES (3,1);
INSERT INTO `captured` VALUES (4,1);
INSERT INTO `captured` VALUES (5,1);
INSERT INTO `captured` VALUES (6,1);
/*!40000 ALTER TABLE `captured` ENABLE KEYS */;
UNLOCK TABLES;
/*!50003 SET @saved_cs_client      = @@character_set_client */ ;
/*!50003 SET @saved_cs_results     = @@character_set_results */ ;
/*!50003 SET @saved_col_connection = @@collation_connection */ ;
/*!50003 SET character_set_client  = utf8mb4 */ ;
/*!50003 SET character_set_results = utf8mb4 */ ;
/*!50003 SET collation_connection  = utf8mb4_general_ci */ ;
/*!50003 SET @saved_sql_mode       = @@sql_mode */ ;
/*!50003 SET sql_mode              = 'STRICT_ALL_TABLES,ALLOW_INVALID_DATES' */ ;
DELIMITER ;;
/*!50003 CREATE*/ /*!50017 DEFINER=`root`@`127.0.0.1`*/ /*!50003 TRIGGER `rowfeed_captured_insert` AFTER INSERT ON `captured` FOR EACH ROW
INSERT INTO `rowfeed_outbox_captured` (shard, `id`) VALUES (NEW.`v`, NEW.`id`) */;;
DELIMITER ;
/*!50003 SET sql_mode              = @saved_sql_mode */ ;
/*!50003 SET character_set_client  = @saved_cs_client */ ;
/*!50003 SET character_set_results = @saved_cs_results */ ;
/*!50003 SET collation_connection  = @saved_col_connection */ ;
/*!50003 SET @saved_cs_client      = @@character_set_client */ ;
/*!50003 SET @saved_cs_results     = @@character_set_results */ ;
/*!50003 SET @saved_col_connection = @@collation_connection */ ;
/*!50003 SET character_set_client  = utf8mb4 */ ;
/*!50003 SET character_set_results = utf8mb4 */ ;
/*!50003 SET collation_connection  = utf8mb4_general_ci */ ;
/*!50003 SET @saved_sql_mode       = @@sql_mode */ ;
/*!50003 SET sql_mode              = 'STRICT_ALL_TABLES,ALLOW_INVALID_DATES' */ ;
DELIMITER ;;
/*!50003 CREATE*/ /*!50017 DEFINER=`root`@`127.0.0.1`*/ /*!50003 TRIGGER `rowfeed_captured_update` AFTER UPDATE ON `captured` FOR EACH ROW
BEGIN
  IF NOT (OLD.`id` <=> NEW.`id`) THEN
    INSERT INTO `rowfeed_outbox_captured` (shard, `id`) VALUES (NEW.`v`, NEW.`id`);
  END IF;
END */;;
DELIMITER ;
/*!50003 SET sql_mode              = @saved_sql_mode */ ;
/*!50003 SET character_set_client  = @saved_cs_client */ ;
/*!50003 SET character_set_results = @saved_cs_results */ ;
/*!50003 SET collation_connection  = @saved_col_connection */ ;
DROP TABLE IF EXISTS `columned`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `columned` (
  `id` bigint(20) NOT NULL,
  `v` int(11) NOT NULL,
  `feed_sync_id` bigint(20) INVISIBLE DEFAULT NULL,
  `shard` int(11) NOT NULL INVISIBLE DEFAULT 0,
  PRIMARY KEY (`id`),
  KEY `rowfeed_columned_row_position` (`feed_sync_id`,`id`,`shard`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `columned` WRITE;
/*!40000 ALTER TABLE `columned` DISABLE KEYS */;
INSERT INTO `columned` (`id`, `v`, `feed_sync_id`, `shard`) VALUES (1,1,1,0);
INSERT INTO `columned` (`id`, `v`, `feed_sync_id`, `shard`) VALUES (2,1,2,0);
INSERT INTO `columned` (`id`, `v`, `feed_sync_id`, `shard`) VALUES (4,1,4,0);
INSERT INTO `columned` (`id`, `v`, `feed_sync_id`, `shard`) VALUES (5,1,6,0);
INSERT INTO `columned` (`id`, `v`, `feed_sync_id`, `shard`) VALUES (6,1,NULL,0);
/*!40000 ALTER TABLE `columned` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `composite`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `composite` (
  `ns` char(50) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  `id` char(50) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  `v` int(11) NOT NULL,
  PRIMARY KEY (`ns`,`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `composite` WRITE;
/*!40000 ALTER TABLE `composite` DISABLE KEYS */;
INSERT INTO `composite` VALUES ('√º','1',1);
INSERT INTO `composite` VALUES ('√º','2',1);
INSERT INTO `composite` VALUES ('√º','4',1);
INSERT INTO `composite` VALUES ('√º','5',1);
INSERT INTO `composite` VALUES ('√º','6',1);
/*!40000 ALTER TABLE `composite` ENABLE KEYS */;
UNLOCK TABLES;
/*!50003 SET @saved_cs_client      = @@character_set_client */ ;
/*!50003 SET @saved_cs_results     = @@character_set_results */ ;
/*!50003 SET @saved_col_connection = @@collation_connection */ ;
/*!50003 SET character_set_client  = utf8mb4 */ ;
/*!50003 SET character_set_results = utf8mb4 */ ;
/*!50003 SET collation_connection  = utf8mb4_general_ci */ ;
/*!50003 SET @saved_sql_mode       = @@sql_mode */ ;
/*!50003 SET sql_mode              = 'STRICT_ALL_TABLES,ALLOW_INVALID_DATES' */ ;
DELIMITER ;;
/*!50003 CREATE*/ /*!50017 DEFINER=`root`@`127.0.0.1`*/ /*!50003 TRIGGER `rowfeed_composite_insert` AFTER INSERT ON `composite` FOR EACH ROW
INSERT INTO `rowfeed_changes_composite` (`ns`, `id`) VALUES (NEW.`ns`, NEW.`id`) */;;
DELIMITER ;
/*!50003 SET sql_mode              = @saved_sql_mode */ ;
/*!50003 SET character_set_client  = @saved_cs_client */ ;
/*!50003 SET character_set_results = @saved_cs_results */ ;
/*!50003 SET collation_connection  = @saved_col_connection */ ;
/*!50003 SET @saved_cs_client      = @@character_set_client */ ;
/*!50003 SET @saved_cs_results     = @@character_set_results */ ;
/*!50003 SET @saved_col_connection = @@collation_connection */ ;
/*!50003 SET character_set_client  = utf8mb4 */ ;
/*!50003 SET character_set_results = utf8mb4 */ ;
/*!50003 SET collation_connection  = utf8mb4_general_ci */ ;
/*!50003 SET @saved_sql_mode       = @@sql_mode */ ;
/*!50003 SET sql_mode              = 'STRICT_ALL_TABLES,ALLOW_INVALID_DATES' */ ;
DELIMITER ;;
/*!50003 CREATE*/ /*!50017 DEFINER=`root`@`127.0.0.1`*/ /*!50003 TRIGGER `rowfeed_composite_update` AFTER UPDATE ON `composite` FOR EACH ROW
BEGIN
  IF NOT (OLD.`ns` <=> NEW.`ns` AND OLD.`id` <=> NEW.`id`) THEN
    INSERT INTO `rowfeed_changes_composite` (`ns`, `id`) VALUES (OLD.`ns`, OLD.`id`);
  END IF;
  INSERT INTO `rowfeed_changes_composite` (`ns`, `id`) VALUES (NEW.`ns`, NEW.`id`);
END */;;
DELIMITER ;
/*!50003 SET sql_mode              = @saved_sql_mode */ ;
/*!50003 SET character_set_client  = @saved_cs_client */ ;
/*!50003 SET character_set_results = @saved_cs_results */ ;
/*!50003 SET collation_connection  = @saved_col_connection */ ;
/*!50003 SET @saved_cs_client      = @@character_set_client */ ;
/*!50003 SET @saved_cs_results     = @@character_set_results */ ;
/*!50003 SET @saved_col_connection = @@collation_connection */ ;
/*!50003 SET character_set_client  = utf8mb4 */ ;
/*!50003 SET character_set_results = utf8mb4 */ ;
/*!50003 SET collation_connection  = utf8mb4_general_ci */ ;
/*!50003 SET @saved_sql_mode       = @@sql_mode */ ;
/*!50003 SET sql_mode              = 'STRICT_ALL_TABLES,ALLOW_INVALID_DATES' */ ;
DELIMITER ;;
/*!50003 CREATE*/ /*!50017 DEFINER=`root`@`127.0.0.1`*/ /*!50003 TRIGGER `rowfeed_composite_delete` AFTER DELETE ON `composite` FOR EACH ROW
INSERT INTO `rowfeed_changes_composite` (`ns`, `id`) VALUES (OLD.`ns`, OLD.`id`) */;;
DELIMITER ;
/*!50003 SET sql_mode              = @saved_sql_mode */ ;
/*!50003 SET character_set_client  = @saved_cs_client */ ;
/*!50003 SET character_set_results = @saved_cs_results */ ;
/*!50003 SET collation_connection  = @saved_col_connection */ ;
DROP TABLE IF EXISTS `rowfeed_audit`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `rowfeed_audit` (
  `id` bigint(20) NOT NULL AUTO_INCREMENT,
  `mark` varchar(100) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  `at` bigint(20) NOT NULL,
  `actor` longtext NOT NULL,
  `act` longtext NOT NULL,
  `object` longtext NOT NULL,
  `detail` longtext NOT NULL,
  `outcome` longtext NOT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB AUTO_INCREMENT=2 DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin ROW_FORMAT=DYNAMIC;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `rowfeed_audit` WRITE;
/*!40000 ALTER TABLE `rowfeed_audit` DISABLE KEYS */;
INSERT INTO `rowfeed_audit` VALUES (1,'63fbggcump2tonezmh3lyvpalr',1795703251071118,'√º@stored','consumer pause','consumer paused','one feed','done');
/*!40000 ALTER TABLE `rowfeed_audit` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `rowfeed_batch_columned`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `rowfeed_batch_columned` (
  `seq` bigint(20) NOT NULL AUTO_INCREMENT,
  `id` bigint(20) NOT NULL,
  PRIMARY KEY (`seq`)
) ENGINE=InnoDB AUTO_INCREMENT=9 DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin ROW_FORMAT=DYNAMIC;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `rowfeed_batch_columned` WRITE;
/*!40000 ALTER TABLE `rowfeed_batch_columned` DISABLE KEYS */;
/*!40000 ALTER TABLE `rowfeed_batch_columned` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `rowfeed_changes_columned`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `rowfeed_changes_columned` (
  `seq` bigint(20) NOT NULL AUTO_INCREMENT,
  `id` bigint(20) NOT NULL,
  `kind` tinyint(4) NOT NULL DEFAULT 0,
  `changed_at` timestamp(6) NOT NULL DEFAULT current_timestamp(6),
  PRIMARY KEY (`seq`)
) ENGINE=InnoDB AUTO_INCREMENT=2 DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin ROW_FORMAT=DYNAMIC;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `rowfeed_changes_columned` WRITE;
/*!40000 ALTER TABLE `rowfeed_changes_columned` DISABLE KEYS */;
/*!40000 ALTER TABLE `rowfeed_changes_columned` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `rowfeed_changes_composite`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `rowfeed_changes_composite` (
  `seq` bigint(20) NOT NULL AUTO_INCREMENT,
  `ns` char(50) NOT NULL,
  `id` char(50) NOT NULL,
  `kind` tinyint(4) NOT NULL DEFAULT 0,
  `changed_at` timestamp(6) NOT NULL DEFAULT current_timestamp(6),
  PRIMARY KEY (`seq`)
) ENGINE=InnoDB AUTO_INCREMENT=8 DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin ROW_FORMAT=DYNAMIC;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `rowfeed_changes_composite` WRITE;
/*!40000 ALTER TABLE `rowfeed_changes_composite` DISABLE KEYS */;
INSERT INTO `rowfeed_changes_composite` VALUES (7,'√º','6',0,'2026-11-26 14:27:30.030125');
/*!40000 ALTER TABLE `rowfeed_changes_composite` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `rowfeed_changes_sharded`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `rowfeed_changes_sharded` (
  `seq` bigint(20) NOT NULL AUTO_INCREMENT,
  `id` bigint(20) NOT NULL,
  `kind` tinyint(4) NOT NULL DEFAULT 0,
  `changed_at` timestamp(6) NOT NULL DEFAULT current_timestamp(6),
  PRIMARY KEY (`seq`)
) ENGINE=InnoDB AUTO_INCREMENT=8 DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin ROW_FORMAT=DYNAMIC;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `rowfeed_changes_sharded` WRITE;
/*!40000 ALTER TABLE `rowfeed_changes_sharded` DISABLE KEYS */;
INSERT INTO `rowfeed_changes_sharded` VALUES (7,6,0,'2026-11-26 14:27:30.366775');
/*!40000 ALTER TABLE `rowfeed_changes_sharded` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `rowfeed_changes_single`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `rowfeed_changes_single` (
  `seq` bigint(20) NOT NULL AUTO_INCREMENT,
  `id` bigint(20) NOT NULL,
  `kind` tinyint(4) NOT NULL DEFAULT 0,
  `changed_at` timestamp(6) NOT NULL DEFAULT current_timestamp(6),
  PRIMARY KEY (`seq`)
) ENGINE=InnoDB AUTO_INCREMENT=8 DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin ROW_FORMAT=DYNAMIC;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `rowfeed_changes_single` WRITE;
/*!40000 ALTER TABLE `rowfeed_changes_single` DISABLE KEYS */;
INSERT INTO `rowfeed_changes_single` VALUES (7,6,0,'2026-11-26 14:27:29.823168');
/*!40000 ALTER TABLE `rowfeed_changes_single` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `rowfeed_consumers`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `rowfeed_consumers` (
  `consumer` varchar(100) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  `feed` varchar(39) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  `shard_count` int(11) NOT NULL,
  `paused` smallint(6) NOT NULL,
  `version` bigint(20) NOT NULL,
  PRIMARY KEY (`consumer`,`feed`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin ROW_FORMAT=DYNAMIC;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `rowfeed_consumers` WRITE;
/*!40000 ALTER TABLE `rowfeed_consumers` DISABLE KEYS */;
INSERT INTO `rowfeed_consumers` VALUES ('app','appended',1,0,1);
INSERT INTO `rowfeed_consumers` VALUES ('app','blocking',1,0,1);
INSERT INTO `rowfeed_consumers` VALUES ('app','captured',1,0,1);
/*!40000 ALTER TABLE `rowfeed_consumers` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `rowfeed_cursors`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `rowfeed_cursors` (
  `consumer` varchar(100) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  `feed` varchar(39) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  `shard` bigint(20) NOT NULL,
  `shard_count` int(11) NOT NULL,
  `value` text CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  `generation` bigint(20) NOT NULL,
  `epoch` bigint(20) NOT NULL,
  `version` bigint(20) NOT NULL,
  `paused` smallint(6) NOT NULL,
  `aside` bigint(20) NOT NULL DEFAULT 0,
  `updated_at` bigint(20) NOT NULL,
  `failure` longtext DEFAULT NULL,
  `failing_since` bigint(20) DEFAULT NULL,
  `attempts` bigint(20) DEFAULT NULL,
  `next_try` bigint(20) DEFAULT NULL,
  `target` text DEFAULT NULL,
  PRIMARY KEY (`consumer`,`feed`,`shard`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin ROW_FORMAT=DYNAMIC;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `rowfeed_cursors` WRITE;
/*!40000 ALTER TABLE `rowfeed_cursors` DISABLE KEYS */;
INSERT INTO `rowfeed_cursors` VALUES ('app','appended',1,1,'01M8C427EE6JMV4PWMHTQXKCM9',1,0,4,0,1,1795703250573283,NULL,NULL,NULL,NULL,NULL);
INSERT INTO `rowfeed_cursors` VALUES ('app','blocking',1,1,'01M8C427XZYCZHHKE3WR78DMW5',1,0,4,0,1,1795703251039474,NULL,NULL,NULL,NULL,NULL);
INSERT INTO `rowfeed_cursors` VALUES ('app','captured',1,1,'01M8C427PGM74AN5G062B2VKTA',1,0,4,0,1,1795703250823499,NULL,NULL,NULL,NULL,NULL);
INSERT INTO `rowfeed_cursors` VALUES ('app','columned',0,1,'4.2uflc0dvh3',1,0,6,0,1,1795703250180440,NULL,NULL,NULL,NULL,NULL);
INSERT INTO `rowfeed_cursors` VALUES ('app','composite',0,1,'4.51fsejd2ku',1,0,6,0,1,1795703250025942,NULL,NULL,NULL,NULL,NULL);
INSERT INTO `rowfeed_cursors` VALUES ('app','sharded',0,1,'4.71t03pc371',1,0,6,0,1,1795703250340827,NULL,NULL,NULL,NULL,NULL);
INSERT INTO `rowfeed_cursors` VALUES ('app','single',0,1,'4.7ohf8gcfck',1,0,6,0,1,1795703249784291,NULL,NULL,NULL,NULL,NULL);
INSERT INTO `rowfeed_cursors` VALUES ('halves','sharded',0,2,'6.71t03pc371',1,0,3,0,0,1795703250352197,NULL,NULL,NULL,NULL,NULL);
INSERT INTO `rowfeed_cursors` VALUES ('halves','sharded',1,2,'6.71t03pc371',1,0,1,0,0,1795703250353902,NULL,NULL,NULL,NULL,NULL);
INSERT INTO `rowfeed_cursors` VALUES ('paused','sharded',0,1,'6.71t03pc371',1,0,7,1,0,1795703250365287,NULL,NULL,NULL,NULL,NULL);
/*!40000 ALTER TABLE `rowfeed_cursors` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `rowfeed_dead_letters`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `rowfeed_dead_letters` (
  `consumer` varchar(100) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  `feed` varchar(39) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  `shard` bigint(20) NOT NULL,
  `key_digest` char(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  `key_json` longtext NOT NULL,
  `generation` bigint(20) NOT NULL,
  `position` varchar(40) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  `op` varchar(10) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  `state` varchar(20) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  `attempts` bigint(20) NOT NULL,
  `collapsed` bigint(20) NOT NULL,
  `error` longtext NOT NULL,
  `first_at` bigint(20) NOT NULL,
  `last_at` bigint(20) NOT NULL,
  `data_shard` bigint(20) DEFAULT NULL,
  PRIMARY KEY (`consumer`,`feed`,`shard`,`key_digest`),
  KEY `rowfeed_dead_letters_first` (`consumer`,`feed`,`shard`,`first_at`,`key_digest`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin ROW_FORMAT=DYNAMIC;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `rowfeed_dead_letters` WRITE;
/*!40000 ALTER TABLE `rowfeed_dead_letters` DISABLE KEYS */;
INSERT INTO `rowfeed_dead_letters` VALUES ('app','appended',1,'9e7e65453739bbc64ba155eed18a37bd5fb1196c7f29ded1da660b94414d7ad8','{\"id\":2}',1,'01M8C427EE6JMV4PWMHTQXKCM7','upsert','aside',2,0,'the handler fails for this row',1795703250553332,1795703250553332,1);
INSERT INTO `rowfeed_dead_letters` VALUES ('app','blocking',1,'9e7e65453739bbc64ba155eed18a37bd5fb1196c7f29ded1da660b94414d7ad8','{\"id\":2}',1,'01M8C427XR5JR1001379619HD3','upsert','aside',2,0,'the handler fails for this row',1795703250998459,1795703250998459,1);
INSERT INTO `rowfeed_dead_letters` VALUES ('app','captured',1,'9e7e65453739bbc64ba155eed18a37bd5fb1196c7f29ded1da660b94414d7ad8','{\"id\":2}',1,'01M8C427PGM74AN5G062B2VKT8','upsert','aside',2,0,'the handler fails for this row',1795703250799253,1795703250799253,1);
INSERT INTO `rowfeed_dead_letters` VALUES ('app','columned',0,'9e7e65453739bbc64ba155eed18a37bd5fb1196c7f29ded1da660b94414d7ad8','{\"id\":2}',1,'2','upsert','aside',2,0,'the handler fails for this row',1795703250176571,1795703250176571,0);
INSERT INTO `rowfeed_dead_letters` VALUES ('app','composite',0,'c1a6bcd0cdf9d1276383bca80fe614acacefc699915ad049916febfc1bdaf635','{\"ns\":\"√º\",\"id\":\"2\"}',1,'2','upsert','aside',2,0,'the handler fails for this row',1795703250022363,1795703250022363,0);
INSERT INTO `rowfeed_dead_letters` VALUES ('app','sharded',0,'9e7e65453739bbc64ba155eed18a37bd5fb1196c7f29ded1da660b94414d7ad8','{\"id\":2}',1,'2','upsert','aside',2,0,'the handler fails for this row',1795703250336087,1795703250336087,5);
INSERT INTO `rowfeed_dead_letters` VALUES ('app','single',0,'9e7e65453739bbc64ba155eed18a37bd5fb1196c7f29ded1da660b94414d7ad8','{\"id\":2}',1,'2','upsert','aside',2,0,'the handler fails for this row',1795703249754445,1795703249754445,0);
/*!40000 ALTER TABLE `rowfeed_dead_letters` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `rowfeed_feed_appended`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `rowfeed_feed_appended` (
  `shard` bigint(20) NOT NULL,
  `ulid` binary(16) NOT NULL,
  `id` bigint(20) NOT NULL,
  PRIMARY KEY (`id`),
  UNIQUE KEY `place` (`shard`,`ulid`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin ROW_FORMAT=DYNAMIC;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `rowfeed_feed_appended` WRITE;
/*!40000 ALTER TABLE `rowfeed_feed_appended` DISABLE KEYS */;
INSERT INTO `rowfeed_feed_appended` VALUES (1,'¢AŒ4©≤[îéØŸ≤Ü',1);
INSERT INTO `rowfeed_feed_appended` VALUES (1,'¢AŒ4©≤[îéØŸ≤á',2);
INSERT INTO `rowfeed_feed_appended` VALUES (1,'¢AŒ4©≤[îéØŸ≤à',3);
INSERT INTO `rowfeed_feed_appended` VALUES (1,'¢AŒ4©≤[îéØŸ≤â',4);
INSERT INTO `rowfeed_feed_appended` VALUES (1,'¢Aì\rL\'1¡‘p/Ù',5);
/*!40000 ALTER TABLE `rowfeed_feed_appended` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `rowfeed_feed_captured`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `rowfeed_feed_captured` (
  `shard` bigint(20) NOT NULL,
  `ulid` binary(16) NOT NULL,
  `id` bigint(20) NOT NULL,
  PRIMARY KEY (`id`),
  UNIQUE KEY `place` (`shard`,`ulid`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin ROW_FORMAT=DYNAMIC;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `rowfeed_feed_captured` WRITE;
/*!40000 ALTER TABLE `rowfeed_feed_captured` DISABLE KEYS */;
INSERT INTO `rowfeed_feed_captured` VALUES (1,'¢A–°»™ñ\00ñ-œG',1);
INSERT INTO `rowfeed_feed_captured` VALUES (1,'¢A–°»™ñ\00ñ-œH',2);
INSERT INTO `rowfeed_feed_captured` VALUES (1,'¢A–°»™ñ\00ñ-œI',3);
INSERT INTO `rowfeed_feed_captured` VALUES (1,'¢A–°»™ñ\00ñ-œJ',4);
INSERT INTO `rowfeed_feed_captured` VALUES (1,'¢Aöºô∑∫PÇk´d∞',5);
/*!40000 ALTER TABLE `rowfeed_feed_captured` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `rowfeed_feeds`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `rowfeed_feeds` (
  `name` varchar(39) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  `mode` varchar(20) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  `capture` varchar(20) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  `state` varchar(20) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  `generation` bigint(20) NOT NULL,
  `source_schema` varchar(64) DEFAULT NULL,
  `source_table` varchar(64) NOT NULL,
  `key_columns` longtext NOT NULL,
  `delivered_columns` longtext DEFAULT NULL,
  `options` longtext NOT NULL,
  `data_shards` int(11) NOT NULL DEFAULT 1,
  `shard_column` varchar(64) DEFAULT NULL,
  `tombstones_seconds` bigint(20) NOT NULL,
  `tombstones_below` bigint(20) NOT NULL DEFAULT 0,
  `database_identity` varchar(255) DEFAULT NULL,
  `fill_after` longtext DEFAULT NULL,
  `created_at` bigint(20) NOT NULL,
  `failure` text DEFAULT NULL,
  `failing_since` bigint(20) DEFAULT NULL,
  `attempts` bigint(20) DEFAULT NULL,
  `next_try` bigint(20) DEFAULT NULL,
  PRIMARY KEY (`name`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin ROW_FORMAT=DYNAMIC;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `rowfeed_feeds` WRITE;
/*!40000 ALTER TABLE `rowfeed_feeds` DISABLE KEYS */;
INSERT INTO `rowfeed_feeds` VALUES ('appended','outbox','app','active',1,'','appended','[{\"name\":\"id\",\"type\":\"bigint(20)\",\"decl\":\"bigint(20)\",\"kind\":\"integer\",\"stored\":\"id\",\"exact\":true}]',NULL,'{\"primary_key\":true,\"ulids\":{\"Position\":{\"name\":\"ulid\",\"type\":\"binary(16)\",\"decl\":\"binary(16)\",\"kind\":\"binary\"},\"Shard\":{\"name\":\"shard\",\"type\":\"bigint\",\"kind\":\"integer\"},\"Index\":\"place\"},\"runs\":1}',1,NULL,0,0,'server_id 1',NULL,1795703250372584,NULL,NULL,NULL,NULL);
INSERT INTO `rowfeed_feeds` VALUES ('blocking','blocking','none','active',1,'','blocking','[{\"name\":\"id\",\"type\":\"bigint(20)\",\"decl\":\"bigint(20)\",\"kind\":\"integer\",\"stored\":\"id\",\"exact\":true}]',NULL,'{\"primary_key\":true,\"ulids\":{\"Position\":{\"name\":\"u\",\"type\":\"binary(16)\",\"decl\":\"binary(16)\",\"kind\":\"binary\",\"exact\":true},\"Shard\":{\"name\":\"v\",\"type\":\"int(11)\",\"decl\":\"int(11)\",\"kind\":\"integer\",\"exact\":true},\"Index\":\"blocking_feed\"}}',1,'v',0,0,'server_id 1',NULL,1795703250858063,NULL,NULL,NULL,NULL);
INSERT INTO `rowfeed_feeds` VALUES ('captured','outbox','trigger','active',1,'','captured','[{\"name\":\"id\",\"type\":\"bigint(20)\",\"decl\":\"bigint(20)\",\"kind\":\"integer\",\"stored\":\"id\",\"exact\":true}]',NULL,'{\"primary_key\":true,\"ulids\":{\"Position\":{\"name\":\"ulid\",\"type\":\"binary(16)\",\"decl\":\"binary(16)\",\"kind\":\"binary\"},\"Shard\":{\"name\":\"shard\",\"type\":\"bigint\",\"kind\":\"integer\"},\"Index\":\"place\"},\"runs\":1}',1,'v',0,0,'server_id 1',NULL,1795703250606246,NULL,NULL,NULL,NULL);
INSERT INTO `rowfeed_feeds` VALUES ('columned','sequence','column','active',1,'','columned','[{\"name\":\"id\",\"type\":\"bigint(20)\",\"decl\":\"bigint(20)\",\"kind\":\"integer\",\"stored\":\"id\",\"exact\":true}]',NULL,'{\"primary_key\":true,\"added\":[\"feed_sync_id\",\"shard\"]}',1,NULL,2592000,0,'server_id 1',NULL,1795703250034747,NULL,NULL,NULL,NULL);
INSERT INTO `rowfeed_feeds` VALUES ('composite','sequence','trigger','active',1,'','composite','[{\"name\":\"ns\",\"type\":\"char(50)\",\"decl\":\"char(50) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin\",\"kind\":\"text\",\"stored\":\"ns\",\"exact\":true},{\"name\":\"id\",\"type\":\"char(50)\",\"decl\":\"char(50) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin\",\"kind\":\"text\",\"stored\":\"id\",\"exact\":true}]',NULL,'{\"primary_key\":true}',1,NULL,2592000,0,'server_id 1',NULL,1795703249853017,NULL,NULL,NULL,NULL);
INSERT INTO `rowfeed_feeds` VALUES ('sharded','sequence','trigger','active',1,'','sharded','[{\"name\":\"id\",\"type\":\"bigint(20)\",\"decl\":\"bigint(20)\",\"kind\":\"integer\",\"stored\":\"id\",\"exact\":true}]',NULL,'{\"primary_key\":true}',8,NULL,2592000,0,'server_id 1',NULL,1795703250193312,NULL,NULL,NULL,NULL);
INSERT INTO `rowfeed_feeds` VALUES ('single','sequence','trigger','active',1,'','single','[{\"name\":\"id\",\"type\":\"bigint(20)\",\"decl\":\"bigint(20)\",\"kind\":\"integer\",\"stored\":\"id\",\"exact\":true}]',NULL,'{\"primary_key\":true}',1,NULL,2592000,0,'server_id 1',NULL,1795703249548124,NULL,NULL,NULL,NULL);
/*!40000 ALTER TABLE `rowfeed_feeds` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `rowfeed_flushes`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `rowfeed_flushes` (
  `id` int(11) NOT NULL,
  `flush_count` bigint(20) NOT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin ROW_FORMAT=DYNAMIC;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `rowfeed_flushes` WRITE;
/*!40000 ALTER TABLE `rowfeed_flushes` DISABLE KEYS */;
INSERT INTO `rowfeed_flushes` VALUES (5,40);
INSERT INTO `rowfeed_flushes` VALUES (7,20);
/*!40000 ALTER TABLE `rowfeed_flushes` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `rowfeed_leases`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `rowfeed_leases` (
  `name` varchar(100) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  `owner` varchar(150) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  `epoch` bigint(20) NOT NULL,
  `expires_at` bigint(20) DEFAULT NULL,
  `acquired_at` bigint(20) NOT NULL,
  `renewals` bigint(20) NOT NULL,
  PRIMARY KEY (`name`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin ROW_FORMAT=DYNAMIC;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `rowfeed_leases` WRITE;
/*!40000 ALTER TABLE `rowfeed_leases` DISABLE KEYS */;
INSERT INTO `rowfeed_leases` VALUES ('stored','vm/9324/7lyehs6xyph6rfbwyvhdoggsrt',1,1795706851076729,1795703251076729,0);
/*!40000 ALTER TABLE `rowfeed_leases` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `rowfeed_outbox_appended`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `rowfeed_outbox_appended` (
  `order_sequence` bigint(20) NOT NULL AUTO_INCREMENT,
  `shard` bigint(20) NOT NULL DEFAULT 0,
  `time_hint` bigint(20) DEFAULT NULL,
  `appended_at` timestamp(6) NOT NULL DEFAULT current_timestamp(6),
  `id` bigint(20) NOT NULL,
  PRIMARY KEY (`order_sequence`),
  KEY `shard` (`shard`,`order_sequence`)
) ENGINE=InnoDB AUTO_INCREMENT=7 DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin ROW_FORMAT=DYNAMIC;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `rowfeed_outbox_appended` WRITE;
/*!40000 ALTER TABLE `rowfeed_outbox_appended` DISABLE KEYS */;
INSERT INTO `rowfeed_outbox_appended` VALUES (6,1,NULL,'2026-11-26 14:27:30.587803',6);
/*!40000 ALTER TABLE `rowfeed_outbox_appended` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `rowfeed_outbox_captured`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `rowfeed_outbox_captured` (
  `order_sequence` bigint(20) NOT NULL AUTO_INCREMENT,
  `shard` bigint(20) NOT NULL DEFAULT 0,
  `time_hint` bigint(20) DEFAULT NULL,
  `appended_at` timestamp(6) NOT NULL DEFAULT current_timestamp(6),
  `id` bigint(20) NOT NULL,
  PRIMARY KEY (`order_sequence`),
  KEY `shard` (`shard`,`order_sequence`)
) ENGINE=InnoDB AUTO_INCREMENT=7 DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin ROW_FORMAT=DYNAMIC;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `rowfeed_outbox_captured` WRITE;
/*!40000 ALTER TABLE `rowfeed_outbox_captured` DISABLE KEYS */;
INSERT INTO `rowfeed_outbox_captured` VALUES (6,1,NULL,'2026-11-26 14:27:30.852333',6);
/*!40000 ALTER TABLE `rowfeed_outbox_captured` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `rowfeed_positions_columned`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `rowfeed_positions_columned` (
  `id` bigint(20) NOT NULL,
  `feed_sync_id` bigint(20) NOT NULL,
  `shard` int(11) NOT NULL,
  `bucket` int(11) NOT NULL,
  `deleted` tinyint(4) NOT NULL,
  `hidden` tinyint(4) NOT NULL,
  `published_at` bigint(20) NOT NULL,
  PRIMARY KEY (`id`),
  KEY `feed_sync_id` (`feed_sync_id`,`shard`,`deleted`,`hidden`),
  KEY `deleted` (`deleted`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin ROW_FORMAT=DYNAMIC;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `rowfeed_positions_columned` WRITE;
/*!40000 ALTER TABLE `rowfeed_positions_columned` DISABLE KEYS */;
INSERT INTO `rowfeed_positions_columned` VALUES (3,5,0,0,1,0,1795703250182762);
/*!40000 ALTER TABLE `rowfeed_positions_columned` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `rowfeed_positions_composite`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `rowfeed_positions_composite` (
  `ns` char(50) NOT NULL,
  `id` char(50) NOT NULL,
  `feed_sync_id` bigint(20) NOT NULL,
  `shard` int(11) NOT NULL,
  `bucket` int(11) NOT NULL,
  `deleted` tinyint(4) NOT NULL,
  `hidden` tinyint(4) NOT NULL,
  `published_at` bigint(20) NOT NULL,
  PRIMARY KEY (`ns`,`id`),
  KEY `feed_sync_id` (`feed_sync_id`,`shard`,`deleted`,`hidden`),
  KEY `deleted` (`deleted`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin ROW_FORMAT=DYNAMIC;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `rowfeed_positions_composite` WRITE;
/*!40000 ALTER TABLE `rowfeed_positions_composite` DISABLE KEYS */;
INSERT INTO `rowfeed_positions_composite` VALUES ('√º','1',1,0,0,0,0,1795703249878289);
INSERT INTO `rowfeed_positions_composite` VALUES ('√º','2',2,0,0,0,0,1795703249878289);
INSERT INTO `rowfeed_positions_composite` VALUES ('√º','3',5,0,0,1,0,1795703250027790);
INSERT INTO `rowfeed_positions_composite` VALUES ('√º','4',4,0,0,0,0,1795703249878289);
INSERT INTO `rowfeed_positions_composite` VALUES ('√º','5',6,0,0,0,0,1795703250027790);
/*!40000 ALTER TABLE `rowfeed_positions_composite` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `rowfeed_positions_sharded`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `rowfeed_positions_sharded` (
  `id` bigint(20) NOT NULL,
  `feed_sync_id` bigint(20) NOT NULL,
  `shard` int(11) NOT NULL,
  `bucket` int(11) NOT NULL,
  `deleted` tinyint(4) NOT NULL,
  `hidden` tinyint(4) NOT NULL,
  `published_at` bigint(20) NOT NULL,
  PRIMARY KEY (`id`),
  KEY `feed_sync_id` (`feed_sync_id`,`shard`,`deleted`,`hidden`),
  KEY `deleted` (`deleted`),
  KEY `bucket` (`bucket`,`feed_sync_id`,`shard`,`deleted`,`hidden`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin ROW_FORMAT=DYNAMIC;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `rowfeed_positions_sharded` WRITE;
/*!40000 ALTER TABLE `rowfeed_positions_sharded` DISABLE KEYS */;
INSERT INTO `rowfeed_positions_sharded` VALUES (1,1,7,7,0,0,1795703250198549);
INSERT INTO `rowfeed_positions_sharded` VALUES (2,2,5,5,0,0,1795703250198549);
INSERT INTO `rowfeed_positions_sharded` VALUES (3,5,3,3,1,0,1795703250343291);
INSERT INTO `rowfeed_positions_sharded` VALUES (4,4,0,0,0,0,1795703250198549);
INSERT INTO `rowfeed_positions_sharded` VALUES (5,6,6,6,0,0,1795703250343291);
/*!40000 ALTER TABLE `rowfeed_positions_sharded` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `rowfeed_positions_single`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `rowfeed_positions_single` (
  `id` bigint(20) NOT NULL,
  `feed_sync_id` bigint(20) NOT NULL,
  `shard` int(11) NOT NULL,
  `bucket` int(11) NOT NULL,
  `deleted` tinyint(4) NOT NULL,
  `hidden` tinyint(4) NOT NULL,
  `published_at` bigint(20) NOT NULL,
  PRIMARY KEY (`id`),
  KEY `feed_sync_id` (`feed_sync_id`,`shard`,`deleted`,`hidden`),
  KEY `deleted` (`deleted`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin ROW_FORMAT=DYNAMIC;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `rowfeed_positions_single` WRITE;
/*!40000 ALTER TABLE `rowfeed_positions_single` DISABLE KEYS */;
INSERT INTO `rowfeed_positions_single` VALUES (1,1,0,0,0,0,1795703249565489);
INSERT INTO `rowfeed_positions_single` VALUES (2,2,0,0,0,0,1795703249565489);
INSERT INTO `rowfeed_positions_single` VALUES (3,5,0,0,1,0,1795703249800909);
INSERT INTO `rowfeed_positions_single` VALUES (4,4,0,0,0,0,1795703249565489);
INSERT INTO `rowfeed_positions_single` VALUES (5,6,0,0,0,0,1795703249800909);
/*!40000 ALTER TABLE `rowfeed_positions_single` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `rowfeed_processed`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `rowfeed_processed` (
  `consumer` varchar(100) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  `feed` varchar(39) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  `generation` bigint(20) NOT NULL,
  `shard` bigint(20) NOT NULL,
  `position` varchar(40) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  `processed_at` bigint(20) NOT NULL,
  PRIMARY KEY (`consumer`,`feed`,`generation`,`shard`,`position`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin ROW_FORMAT=DYNAMIC;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `rowfeed_processed` WRITE;
/*!40000 ALTER TABLE `rowfeed_processed` DISABLE KEYS */;
INSERT INTO `rowfeed_processed` VALUES ('marks','sharded',1,7,'00000000000000000011j15qv5j80l',1795703250366529);
/*!40000 ALTER TABLE `rowfeed_processed` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `rowfeed_schema_version`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `rowfeed_schema_version` (
  `version` int(11) NOT NULL,
  `applied_at` bigint(20) NOT NULL,
  PRIMARY KEY (`version`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin ROW_FORMAT=DYNAMIC;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `rowfeed_schema_version` WRITE;
/*!40000 ALTER TABLE `rowfeed_schema_version` DISABLE KEYS */;
INSERT INTO `rowfeed_schema_version` VALUES (1,1795703249424829);
INSERT INTO `rowfeed_schema_version` VALUES (2,1795703249426337);
INSERT INTO `rowfeed_schema_version` VALUES (3,1795703249426994);
INSERT INTO `rowfeed_schema_version` VALUES (4,1795703249427490);
INSERT INTO `rowfeed_schema_version` VALUES (5,1795703249428562);
INSERT INTO `rowfeed_schema_version` VALUES (6,1795703249429523);
INSERT INTO `rowfeed_schema_version` VALUES (7,1795703249430264);
INSERT INTO `rowfeed_schema_version` VALUES (8,1795703249431026);
INSERT INTO `rowfeed_schema_version` VALUES (9,1795703249431354);
INSERT INTO `rowfeed_schema_version` VALUES (10,1795703249514417);
INSERT INTO `rowfeed_schema_version` VALUES (11,1795703249522055);
/*!40000 ALTER TABLE `rowfeed_schema_version` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `rowfeed_sequences`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `rowfeed_sequences` (
  `name` varchar(255) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  `value` bigint(20) NOT NULL,
  `version` bigint(20) NOT NULL,
  `updated_at` bigint(20) NOT NULL,
  `term` bigint(20) DEFAULT NULL,
  PRIMARY KEY (`name`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin ROW_FORMAT=DYNAMIC;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `rowfeed_sequences` WRITE;
/*!40000 ALTER TABLE `rowfeed_sequences` DISABLE KEYS */;
INSERT INTO `rowfeed_sequences` VALUES ('appended',0,0,1795703250372905,NULL);
INSERT INTO `rowfeed_sequences` VALUES ('blocking',0,0,1795703250858327,NULL);
INSERT INTO `rowfeed_sequences` VALUES ('captured',0,0,1795703250606659,NULL);
INSERT INTO `rowfeed_sequences` VALUES ('columned',6,2,1795703250182762,103892440776227);
INSERT INTO `rowfeed_sequences` VALUES ('composite',6,2,1795703250027790,177567323032222);
INSERT INTO `rowfeed_sequences` VALUES ('sharded',6,2,1795703250343291,248386675936481);
INSERT INTO `rowfeed_sequences` VALUES ('single',6,2,1795703249800909,273279390989716);
/*!40000 ALTER TABLE `rowfeed_sequences` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `rowfeed_shards`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `rowfeed_shards` (
  `feed` varchar(39) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  `shard` bigint(20) NOT NULL,
  `time_ms` bigint(20) NOT NULL,
  `ulid_high` bigint(20) NOT NULL,
  `ulid_low` bigint(20) NOT NULL,
  `below_high` bigint(20) NOT NULL DEFAULT 0,
  `below_low` bigint(20) NOT NULL DEFAULT 0,
  `witness` varchar(200) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  `live_from` bigint(20) NOT NULL DEFAULT 0,
  `filled_by` bigint(20) NOT NULL DEFAULT 0,
  PRIMARY KEY (`feed`,`shard`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin ROW_FORMAT=DYNAMIC;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `rowfeed_shards` WRITE;
/*!40000 ALTER TABLE `rowfeed_shards` DISABLE KEYS */;
INSERT INTO `rowfeed_shards` VALUES ('appended',1,1795703250579,117683208229948748,2824250753725509621,0,0,'',1795703250382,0);
INSERT INTO `rowfeed_shards` VALUES ('blocking',1,1795703251063,117683208261676346,3404695176843572426,0,0,'N3kTvh7ByGT20G2p GLWFjDVKzJdGvtGq V80nCYoGwsQloyHS x2m70S24PnrJJjq8 UPujy60MRk_mbkLr _FScjf6p1kR0oWit',0,0);
INSERT INTO `rowfeed_shards` VALUES ('captured',1,1795703250842,117683208247229593,-5207761498018192207,0,0,'',1795703250640,0);
/*!40000 ALTER TABLE `rowfeed_shards` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `rowfeed_terms`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `rowfeed_terms` (
  `feed` varchar(39) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  `term` bigint(20) NOT NULL,
  `upto` bigint(20) NOT NULL,
  `ended_at` bigint(20) NOT NULL,
  PRIMARY KEY (`feed`,`term`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin ROW_FORMAT=DYNAMIC;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `rowfeed_terms` WRITE;
/*!40000 ALTER TABLE `rowfeed_terms` DISABLE KEYS */;
INSERT INTO `rowfeed_terms` VALUES ('columned',157299032332880,0,1795703250043167);
INSERT INTO `rowfeed_terms` VALUES ('composite',83676135933421,0,1795703249878289);
INSERT INTO `rowfeed_terms` VALUES ('sharded',235456468033471,0,1795703250198549);
INSERT INTO `rowfeed_terms` VALUES ('single',206745526216498,0,1795703249565489);
/*!40000 ALTER TABLE `rowfeed_terms` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `rowfeed_tokens`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `rowfeed_tokens` (
  `name` varchar(100) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  `sha256` char(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  `grants` longtext NOT NULL,
  `view` longtext NOT NULL,
  `created_at` bigint(20) NOT NULL,
  `expires_at` bigint(20) DEFAULT NULL,
  `revoked_at` bigint(20) DEFAULT NULL,
  PRIMARY KEY (`name`),
  UNIQUE KEY `sha256` (`sha256`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin ROW_FORMAT=DYNAMIC;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `rowfeed_tokens` WRITE;
/*!40000 ALTER TABLE `rowfeed_tokens` DISABLE KEYS */;
INSERT INTO `rowfeed_tokens` VALUES ('stored','d59c087554883b35a48d2e4dbdd1cd0d4673b4d2c1e2d142f211752382af67bd','[{\"right\":\"read\",\"feed\":\"single\"}]','{}',1795703251079039,NULL,NULL);
/*!40000 ALTER TABLE `rowfeed_tokens` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `saved`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `saved` (
  `feed` varchar(50) NOT NULL,
  `after` varchar(100) NOT NULL,
  `entries` text DEFAULT NULL,
  PRIMARY KEY (`feed`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `saved` WRITE;
/*!40000 ALTER TABLE `saved` DISABLE KEYS */;
INSERT INTO `saved` VALUES ('appended','01M8C427EE6JMV4PWMHTQXKCM9','{\"position\":\"01M8C427EE6JMV4PWMHTQXKCM6\",\"shard\":1,\"op\":\"upsert\",\"key\":{\"id\":1},\"row\":{\"id\":1,\"v\":1}}\n{\"position\":\"01M8C427EE6JMV4PWMHTQXKCM7\",\"shard\":1,\"op\":\"upsert\",\"key\":{\"id\":2},\"row\":{\"id\":2,\"v\":1}}\n{\"position\":\"01M8C427EE6JMV4PWMHTQXKCM8\",\"shard\":1,\"op\":\"upsert\",\"key\":{\"id\":3},\"row\":{\"id\":3,\"v\":1}}\n{\"position\":\"01M8C427EE6JMV4PWMHTQXKCM9\",\"shard\":1,\"op\":\"upsert\",\"key\":{\"id\":4},\"row\":{\"id\":4,\"v\":1}}\n{\"position\":\"01M8C427MK1N62ECE133A70BZM\",\"shard\":1,\"op\":\"upsert\",\"key\":{\"id\":5},\"row\":{\"id\":5,\"v\":1}}');
INSERT INTO `saved` VALUES ('blocking','01M8C427XZYCZHHKE3WR78DMW5','{\"position\":\"01M8C427XPVC022ZC0XMKWE8GK\",\"shard\":1,\"op\":\"upsert\",\"key\":{\"id\":1},\"row\":{\"id\":1,\"v\":1,\"u\":\"AaIYQR+22wAhfYDtJ8ciEw==\"}}\n{\"position\":\"01M8C427XR5JR1001379619HD3\",\"shard\":1,\"op\":\"upsert\",\"key\":{\"id\":2},\"row\":{\"id\":2,\"v\":1,\"u\":\"AaIYQR+4LLAQACM6TBTFow==\"}}\n{\"position\":\"01M8C427XYXHN1GTC4Z3X3B6DM\",\"shard\":1,\"op\":\"upsert\",\"key\":{\"id\":3},\"row\":{\"id\":3,\"v\":1,\"u\":\"AaIYQR++7GoYaYT4+jWZtA==\"}}\n{\"position\":\"01M8C427XZYCZHHKE3WR78DMW5\",\"shard\":1,\"op\":\"upsert\",\"key\":{\"id\":4},\"row\":{\"id\":4,\"v\":1,\"u\":\"AaIYQR+/8z8YzcPmDobThQ==\"}}\n{\"position\":\"01M8C428378F1S1N14NJ03CTT6\",\"shard\":1,\"op\":\"upsert\",\"key\":{\"id\":5},\"row\":{\"id\":5,\"v\":1,\"u\":\"AaIYQSBnQ8OQ1CSsgDZrRg==\"}}');
INSERT INTO `saved` VALUES ('captured','01M8C427PGM74AN5G062B2VKTA','{\"position\":\"01M8C427PGM74AN5G062B2VKT7\",\"shard\":1,\"op\":\"upsert\",\"key\":{\"id\":1},\"row\":{\"id\":1,\"v\":1}}\n{\"position\":\"01M8C427PGM74AN5G062B2VKT8\",\"shard\":1,\"op\":\"upsert\",\"key\":{\"id\":2},\"row\":{\"id\":2,\"v\":1}}\n{\"position\":\"01M8C427PGM74AN5G062B2VKT9\",\"shard\":1,\"op\":\"upsert\",\"key\":{\"id\":3},\"row\":{\"id\":3,\"v\":1}}\n{\"position\":\"01M8C427PGM74AN5G062B2VKTA\",\"shard\":1,\"op\":\"upsert\",\"key\":{\"id\":4},\"row\":{\"id\":4,\"v\":1}}\n{\"position\":\"01M8C427WTQJCVFEJGG9NTPS5G\",\"shard\":1,\"op\":\"upsert\",\"key\":{\"id\":5},\"row\":{\"id\":5,\"v\":1}}');
INSERT INTO `saved` VALUES ('columned','4.2uflc0dvh3','{\"position\":\"1\",\"shard\":0,\"op\":\"upsert\",\"key\":{\"id\":1},\"row\":{\"id\":1,\"v\":1}}\n{\"position\":\"2\",\"shard\":0,\"op\":\"upsert\",\"key\":{\"id\":2},\"row\":{\"id\":2,\"v\":1}}\n{\"position\":\"4\",\"shard\":0,\"op\":\"upsert\",\"key\":{\"id\":4},\"row\":{\"id\":4,\"v\":1}}\n{\"position\":\"6\",\"shard\":0,\"op\":\"upsert\",\"key\":{\"id\":5},\"row\":{\"id\":5,\"v\":1}}');
INSERT INTO `saved` VALUES ('composite','4.51fsejd2ku','{\"position\":\"1\",\"shard\":0,\"op\":\"upsert\",\"key\":{\"ns\":\"√º\",\"id\":\"1\"},\"row\":{\"ns\":\"√º\",\"id\":\"1\",\"v\":1}}\n{\"position\":\"2\",\"shard\":0,\"op\":\"upsert\",\"key\":{\"ns\":\"√º\",\"id\":\"2\"},\"row\":{\"ns\":\"√º\",\"id\":\"2\",\"v\":1}}\n{\"position\":\"4\",\"shard\":0,\"op\":\"upsert\",\"key\":{\"ns\":\"√º\",\"id\":\"4\"},\"row\":{\"ns\":\"√º\",\"id\":\"4\",\"v\":1}}\n{\"position\":\"6\",\"shard\":0,\"op\":\"upsert\",\"key\":{\"ns\":\"√º\",\"id\":\"5\"},\"row\":{\"ns\":\"√º\",\"id\":\"5\",\"v\":1}}');
INSERT INTO `saved` VALUES ('sharded','4.71t03pc371','{\"position\":\"1\",\"shard\":7,\"op\":\"upsert\",\"key\":{\"id\":1},\"row\":{\"id\":1,\"v\":1}}\n{\"position\":\"2\",\"shard\":5,\"op\":\"upsert\",\"key\":{\"id\":2},\"row\":{\"id\":2,\"v\":1}}\n{\"position\":\"4\",\"shard\":0,\"op\":\"upsert\",\"key\":{\"id\":4},\"row\":{\"id\":4,\"v\":1}}\n{\"position\":\"6\",\"shard\":6,\"op\":\"upsert\",\"key\":{\"id\":5},\"row\":{\"id\":5,\"v\":1}}');
INSERT INTO `saved` VALUES ('single','4.7ohf8gcfck','{\"position\":\"1\",\"shard\":0,\"op\":\"upsert\",\"key\":{\"id\":1},\"row\":{\"id\":1,\"v\":1}}\n{\"position\":\"2\",\"shard\":0,\"op\":\"upsert\",\"key\":{\"id\":2},\"row\":{\"id\":2,\"v\":1}}\n{\"position\":\"4\",\"shard\":0,\"op\":\"upsert\",\"key\":{\"id\":4},\"row\":{\"id\":4,\"v\":1}}\n{\"position\":\"6\",\"shard\":0,\"op\":\"upsert\",\"key\":{\"id\":5},\"row\":{\"id\":5,\"v\":1}}');
/*!40000 ALTER TABLE `saved` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `sharded`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `sharded` (
  `id` bigint(20) NOT NULL,
  `v` int(11) NOT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `sharded` WRITE;
/*!40000 ALTER TABLE `sharded` DISABLE KEYS */;
INSERT INTO `sharded` VALUES (1,1);
INSERT INTO `sharded` VALUES (2,1);
INSERT INTO `sharded` VALUES (4,1);
INSERT INTO `sharded` VALUES (5,1);
INSERT INTO `sharded` VALUES (6,1);
/*!40000 ALTER TABLE `sharded` ENABLE KEYS */;
UNLOCK TABLES;
/*!50003 SET @saved_cs_client      = @@character_set_client */ ;
/*!50003 SET @saved_cs_results     = @@character_set_results */ ;
/*!50003 SET @saved_col_connection = @@collation_connection */ ;
/*!50003 SET character_set_client  = utf8mb4 */ ;
/*!50003 SET character_set_results = utf8mb4 */ ;
/*!50003 SET collation_connection  = utf8mb4_general_ci */ ;
/*!50003 SET @saved_sql_mode       = @@sql_mode */ ;
/*!50003 SET sql_mode              = 'STRICT_ALL_TABLES,ALLOW_INVALID_DATES' */ ;
DELIMITER ;;
/*!50003 CREATE*/ /*!50017 DEFINER=`root`@`127.0.0.1`*/ /*!50003 TRIGGER `rowfeed_sharded_insert` AFTER INSERT ON `sharded` FOR EACH ROW
INSERT INTO `rowfeed_changes_sharded` (`id`) VALUES (NEW.`id`) */;;
DELIMITER ;
/*!50003 SET sql_mode              = @saved_sql_mode */ ;
/*!50003 SET character_set_client  = @saved_cs_client */ ;
/*!50003 SET character_set_results = @saved_cs_results */ ;
/*!50003 SET collation_connection  = @saved_col_connection */ ;
/*!50003 SET @saved_cs_client      = @@character_set_client */ ;
/*!50003 SET @saved_cs_results     = @@character_set_results */ ;
/*!50003 SET @saved_col_connection = @@collation_connection */ ;
/*!50003 SET character_set_client  = utf8mb4 */ ;
/*!50003 SET character_set_results = utf8mb4 */ ;
/*!50003 SET collation_connection  = utf8mb4_general_ci */ ;
/*!50003 SET @saved_sql_mode       = @@sql_mode */ ;
/*!50003 SET sql_mode              = 'STRICT_ALL_TABLES,ALLOW_INVALID_DATES' */ ;
DELIMITER ;;
/*!50003 CREATE*/ /*!50017 DEFINER=`root`@`127.0.0.1`*/ /*!50003 TRIGGER `rowfeed_sharded_update` AFTER UPDATE ON `sharded` FOR EACH ROW
BEGIN
  IF NOT (OLD.`id` <=> NEW.`id`) THEN
    INSERT INTO `rowfeed_changes_sharded` (`id`) VALUES (OLD.`id`);
  END IF;
  INSERT INTO `rowfeed_changes_sharded` (`id`) VALUES (NEW.`id`);
END */;;
DELIMITER ;
/*!50003 SET sql_mode              = @saved_sql_mode */ ;
/*!50003 SET character_set_client  = @saved_cs_client */ ;
/*!50003 SET character_set_results = @saved_cs_results */ ;
/*!50003 SET collation_connection  = @saved_col_connection */ ;
/*!50003 SET @saved_cs_client      = @@character_set_client */ ;
/*!50003 SET @saved_cs_results     = @@character_set_results */ ;
/*!50003 SET @saved_col_connection = @@collation_connection */ ;
/*!50003 SET character_set_client  = utf8mb4 */ ;
/*!50003 SET character_set_results = utf8mb4 */ ;
/*!50003 SET collation_connection  = utf8mb4_general_ci */ ;
/*!50003 SET @saved_sql_mode       = @@sql_mode */ ;
/*!50003 SET sql_mode              = 'STRICT_ALL_TABLES,ALLOW_INVALID_DATES' */ ;
DELIMITER ;;
/*!50003 CREATE*/ /*!50017 DEFINER=`root`@`127.0.0.1`*/ /*!50003 TRIGGER `rowfeed_sharded_delete` AFTER DELETE ON `sharded` FOR EACH ROW
INSERT INTO `rowfeed_changes_sharded` (`id`) VALUES (OLD.`id`) */;;
DELIMITER ;
/*!50003 SET sql_mode              = @saved_sql_mode */ ;
/*!50003 SET character_set_client  = @saved_cs_client */ ;
/*!50003 SET character_set_results = @saved_cs_results */ ;
/*!50003 SET collation_connection  = @saved_col_connection */ ;
DROP TABLE IF EXISTS `single`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `single` (
  `id` bigint(20) NOT NULL,
  `v` int(11) NOT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `single` WRITE;
/*!40000 ALTER TABLE `single` DISABLE KEYS */;
INSERT INTO `single` VALUES (1,1);
INSERT INTO `single` VALUES (2,1);
INSERT INTO `single` VALUES (4,1);
INSERT INTO `single` VALUES (5,1);
INSERT INTO `single` VALUES (6,1);
/*!40000 ALTER TABLE `single` ENABLE KEYS */;
UNLOCK TABLES;
/*!50003 SET @saved_cs_client      = @@character_set_client */ ;
/*!50003 SET @saved_cs_results     = @@character_set_results */ ;
/*!50003 SET @saved_col_connection = @@collation_connection */ ;
/*!50003 SET character_set_client  = utf8mb4 */ ;
/*!50003 SET character_set_results = utf8mb4 */ ;
/*!50003 SET collation_connection  = utf8mb4_general_ci */ ;
/*!50003 SET @saved_sql_mode       = @@sql_mode */ ;
/*!50003 SET sql_mode              = 'STRICT_ALL_TABLES,ALLOW_INVALID_DATES' */ ;
DELIMITER ;;
/*!50003 CREATE*/ /*!50017 DEFINER=`root`@`127.0.0.1`*/ /*!50003 TRIGGER `rowfeed_single_insert` AFTER INSERT ON `single` FOR EACH ROW
INSERT INTO `rowfeed_changes_single` (`id`) VALUES (NEW.`id`) */;;
DELIMITER ;
/*!50003 SET sql_mode              = @saved_sql_mode */ ;
/*!50003 SET character_set_client  = @saved_cs_client */ ;
/*!50003 SET character_set_results = @saved_cs_results */ ;
/*!50003 SET collation_connection  = @saved_col_connection */ ;
/*!50003 SET @saved_cs_client      = @@character_set_client */ ;
/*!50003 SET @saved_cs_results     = @@character_set_results */ ;
/*!50003 SET @saved_col_connection = @@collation_connection */ ;
/*!50003 SET character_set_client  = utf8mb4 */ ;
/*!50003 SET character_set_results = utf8mb4 */ ;
/*!50003 SET collation_connection  = utf8mb4_general_ci */ ;
/*!50003 SET @saved_sql_mode       = @@sql_mode */ ;
/*!50003 SET sql_mode              = 'STRICT_ALL_TABLES,ALLOW_INVALID_DATES' */ ;
DELIMITER ;;
/*!50003 CREATE*/ /*!50017 DEFINER=`root`@`127.0.0.1`*/ /*!50003 TRIGGER `rowfeed_single_update` AFTER UPDATE ON `single` FOR EACH ROW
BEGIN
  IF NOT (OLD.`id` <=> NEW.`id`) THEN
    INSERT INTO `rowfeed_changes_single` (`id`) VALUES (OLD.`id`);
  END IF;
  INSERT INTO `rowfeed_changes_single` (`id`) VALUES (NEW.`id`);
END */;;
DELIMITER ;
/*!50003 SET sql_mode              = @saved_sql_mode */ ;
/*!50003 SET character_set_client  = @saved_cs_client */ ;
/*!50003 SET character_set_results = @saved_cs_results */ ;
/*!50003 SET collation_connection  = @saved_col_connection */ ;
/*!50003 SET @saved_cs_client      = @@character_set_client */ ;
/*!50003 SET @saved_cs_results     = @@character_set_results */ ;
/*!50003 SET @saved_col_connection = @@collation_connection */ ;
/*!50003 SET character_set_client  = utf8mb4 */ ;
/*!50003 SET character_set_results = utf8mb4 */ ;
/*!50003 SET collation_connection  = utf8mb4_general_ci */ ;
/*!50003 SET @saved_sql_mode       = @@sql_mode */ ;
/*!50003 SET sql_mode              = 'STRICT_ALL_TABLES,ALLOW_INVALID_DATES' */ ;
DELIMITER ;;
/*!50003 CREATE*/ /*!50017 DEFINER=`root`@`127.0.0.1`*/ /*!50003 TRIGGER `rowfeed_single_delete` AFTER DELETE ON `single` FOR EACH ROW
INSERT INTO `rowfeed_changes_single` (`id`) VALUES (OLD.`id`) */;;
DELIMITER ;
/*!50003 SET sql_mode              = @saved_sql_mode */ ;
/*!50003 SET character_set_client  = @saved_cs_client */ ;
/*!50003 SET character_set_results = @saved_cs_results */ ;
/*!50003 SET collation_connection  = @saved_col_connection */ ;
DROP TABLE IF EXISTS `texts`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `texts` (
  `token` varchar(100) NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `texts` WRITE;
/*!40000 ALTER TABLE `texts` DISABLE KEYS */;
INSERT INTO `texts` VALUES ('rf_zMWxRNevCEd8YJVEPfzKxdnTzo9KLt4g4bd4i-_Nk-M');
/*!40000 ALTER TABLE `texts` ENABLE KEYS */;
UNLOCK TABLES;
/*!50003 SET @saved_sql_mode       = @@sql_mode */ ;
/*!50003 SET sql_mode              = 'STRICT_ALL_TABLES,ALLOW_INVALID_DATES' */ ;
/*!50003 DROP FUNCTION IF EXISTS `rowfeed_ulid_blocking` */;
/*!50003 SET @saved_cs_client      = @@character_set_client */ ;
/*!50003 SET @saved_cs_results     = @@character_set_results */ ;
/*!50003 SET @saved_col_connection = @@collation_connection */ ;
/*!50003 SET character_set_client  = utf8mb4 */ ;
/*!50003 SET character_set_results = utf8mb4 */ ;
/*!50003 SET collation_connection  = utf8mb4_general_ci */ ;
DELIMITER ;;
CREATE DEFINER=`root`@`127.0.0.1` FUNCTION `rowfeed_ulid_blocking`(p_ulid_high bigint, p_ulid_low bigint, i bigint) RETURNS binary(16)
    NO SQL
    DETERMINISTIC
    SQL SECURITY INVOKER
BEGIN
  IF p_ulid_high IS NULL OR p_ulid_low IS NULL OR i IS NULL OR i < 0 OR i >= 100000000000 THEN
    SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'rowfeed: give both halves of a lock, and a number below 100000000000; lock again for more';
  END IF;
  RETURN UNHEX(CONCAT(LPAD(HEX(p_ulid_high), 16, '0'), LPAD(HEX((p_ulid_low + i)), 16, '0')));
END ;;
DELIMITER ;
/*!50003 SET sql_mode              = @saved_sql_mode */ ;
/*!50003 SET character_set_client  = @saved_cs_client */ ;
/*!50003 SET character_set_results = @saved_cs_results */ ;
/*!50003 SET collation_connection  = @saved_col_connection */ ;
/*!50003 SET @saved_sql_mode       = @@sql_mode */ ;
/*!50003 SET sql_mode              = 'STRICT_ALL_TABLES,ALLOW_INVALID_DATES' */ ;
/*!50003 DROP PROCEDURE IF EXISTS `rowfeed_lock_blocking` */;
/*!50003 SET @saved_cs_client      = @@character_set_client */ ;
/*!50003 SET @saved_cs_results     = @@character_set_results */ ;
/*!50003 SET @saved_col_connection = @@collation_connection */ ;
/*!50003 SET character_set_client  = utf8mb4 */ ;
/*!50003 SET character_set_results = utf8mb4 */ ;
/*!50003 SET collation_connection  = utf8mb4_general_ci */ ;
DELIMITER ;;
CREATE DEFINER=`root`@`127.0.0.1` PROCEDURE `rowfeed_lock_blocking`(IN p_shard bigint, IN p_time_hint datetime(6), OUT p_ulid binary(16), OUT p_ulid_high bigint, OUT p_ulid_low bigint)
    MODIFIES SQL DATA
BEGIN
  DECLARE v_shard bigint DEFAULT COALESCE(p_shard, 0);
  DECLARE v_time, v_high, v_low, v_first_time, v_first_high, v_now, v_hint, v_random16, v_random64 bigint;
  DECLARE v_bits char(64);
  DECLARE v_greatest binary(16);
  DECLARE EXIT HANDLER FOR 1305 SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'rowfeed: no transaction is open: begin one, lock, insert, commit';
  SAVEPOINT rowfeed_lock;
  RELEASE SAVEPOINT rowfeed_lock;
  INSERT INTO `rowfeed_shards` (feed, shard, time_ms, ulid_high, ulid_low, witness) VALUES ('blocking', v_shard, 0, 0, 0, '') ON DUPLICATE KEY UPDATE witness = witness;
  SELECT time_ms, ulid_high, ulid_low INTO v_time, v_high, v_low FROM `rowfeed_shards` WHERE feed = 'blocking' AND shard = v_shard FOR UPDATE;
  IF v_time = 0 AND NOT EXISTS (SELECT 1 FROM `rowfeed_feeds` WHERE name = 'blocking' AND state = 'active') THEN
    SIGNAL SQLSTATE '42S02' SET MYSQL_ERRNO = 1146, MESSAGE_TEXT = 'rowfeed: the feed is not ready: wait until feed add has ended';
  END IF;
  SELECT MAX(g.`u`) INTO v_greatest FROM `blocking` g WHERE g.`v` = v_shard;
  IF v_greatest >= UNHEX(CONCAT(LPAD(HEX(v_high), 16, '0'), LPAD(HEX(v_low), 16, '0'))) THEN
    SET v_time = CAST(CONV(LEFT(HEX(v_greatest), 12), 16, 10) AS SIGNED) + 1;
    SET v_high = CAST((v_time << 16) AS SIGNED), v_low = -1;
  END IF;
  SET v_now = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) DIV 1000;
  SET v_hint = GREATEST(COALESCE(FLOOR(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', p_time_hint) / 1000), v_now), 1);
  IF v_hint > v_now + 60000 THEN
    SIGNAL SQLSTATE '22007' SET MYSQL_ERRNO = 1292, MESSAGE_TEXT = 'rowfeed: the hint is more than a minute ahead of the clock: leave it out, or mend the clock that it comes from';
  END IF;
  SET v_bits = SHA2(CONCAT(UUID(), ' ', RAND(), ' ', RAND(), ' ', CONNECTION_ID()), 256);
  SET v_random16 = CONV(LEFT(v_bits, 4), 16, 10);
  SET v_random64 = CAST(CAST(CONV(SUBSTRING(v_bits, 5, 16), 16, 10) AS UNSIGNED) AS SIGNED);
  SET v_first_time = CASE WHEN v_hint > v_time THEN v_hint WHEN CAST((v_low & 9223372036854775807) AS SIGNED) > 9223372036854775807 - 100000000000 THEN v_time + 1 ELSE v_time END;
  SET v_first_high = CASE WHEN v_hint > v_time OR CAST((v_low & 9223372036854775807) AS SIGNED) > 9223372036854775807 - 100000000000 THEN CAST(((CASE WHEN v_hint > v_time THEN v_hint WHEN CAST((v_low & 9223372036854775807) AS SIGNED) > 9223372036854775807 - 100000000000 THEN v_time + 1 ELSE v_time END) << 16) AS SIGNED) + v_random16 ELSE v_high END;
  SET v_low = CASE WHEN v_hint > v_time OR CAST((v_low & 9223372036854775807) AS SIGNED) > 9223372036854775807 - 100000000000 THEN CAST((v_random64 & -4611686018427387905) AS SIGNED) ELSE v_low END;
  IF v_first_time > 281474976710655 THEN
    SIGNAL SQLSTATE '22003' SET MYSQL_ERRNO = 1690, MESSAGE_TEXT = 'rowfeed: there is no ULID above those of the shard: rowfeed check names the row, delete it';
  END IF;
  UPDATE `rowfeed_shards` SET time_ms = v_first_time, ulid_high = v_first_high, ulid_low = v_low + 100000000000, witness = witness WHERE feed = 'blocking' AND shard = v_shard;
  IF @@GLOBAL.log_bin AND NOT @@SESSION.sql_log_bin THEN
    SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'rowfeed: sql_log_bin is off: readers would be shown a commit that a crash takes back; leave it on';
  END IF;
  SET p_ulid_high = v_first_high, p_ulid_low = v_low;
  SET p_ulid = UNHEX(CONCAT(LPAD(HEX(v_first_high), 16, '0'), LPAD(HEX(v_low), 16, '0')));
END ;;
DELIMITER ;
/*!50003 SET sql_mode              = @saved_sql_mode */ ;
/*!50003 SET character_set_client  = @saved_cs_client */ ;
/*!50003 SET character_set_results = @saved_cs_results */ ;
/*!50003 SET collation_connection  = @saved_col_connection */ ;
/*!50003 SET @saved_sql_mode       = @@sql_mode */ ;
/*!50003 SET sql_mode              = 'STRICT_ALL_TABLES,ALLOW_INVALID_DATES' */ ;
/*!50003 DROP PROCEDURE IF EXISTS `rowfeed_take_blocking` */;
/*!50003 SET @saved_cs_client      = @@character_set_client */ ;
/*!50003 SET @saved_cs_results     = @@character_set_results */ ;
/*!50003 SET @saved_col_connection = @@collation_connection */ ;
/*!50003 SET character_set_client  = utf8mb4 */ ;
/*!50003 SET character_set_results = utf8mb4 */ ;
/*!50003 SET collation_connection  = utf8mb4_general_ci */ ;
DELIMITER ;;
CREATE DEFINER=`root`@`127.0.0.1` PROCEDURE `rowfeed_take_blocking`(IN p_shard bigint, IN p_hint bigint, IN p_word varchar(40) CHARACTER SET ascii, IN p_wait int, IN p_tighter bool)
    MODIFIES SQL DATA
BEGIN
  DECLARE v_shard bigint DEFAULT COALESCE(p_shard, 0);
  DECLARE v_time, v_high, v_low, v_first_time, v_first_high, v_now, v_hint, v_random16, v_random64 bigint;
  DECLARE v_bits char(64);
  DECLARE v_greatest binary(16);
  DECLARE v_own int DEFAULT @@SESSION.innodb_lock_wait_timeout;
  DECLARE EXIT HANDLER FOR 1305 SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'rowfeed: no transaction is open: begin one, lock, insert, commit';
  SAVEPOINT rowfeed_lock;
  RELEASE SAVEPOINT rowfeed_lock;
  IF p_wait > 0 AND NOT (p_tighter AND v_own <= p_wait) THEN
    SET @rowfeed_own_wait = v_own, SESSION innodb_lock_wait_timeout = p_wait;
  END IF;
  INSERT INTO `rowfeed_shards` (feed, shard, time_ms, ulid_high, ulid_low, witness) VALUES ('blocking', v_shard, 0, 0, 0, '') ON DUPLICATE KEY UPDATE witness = witness;
  SELECT time_ms, ulid_high, ulid_low INTO v_time, v_high, v_low FROM `rowfeed_shards` WHERE feed = 'blocking' AND shard = v_shard FOR UPDATE;
  SET SESSION innodb_lock_wait_timeout = v_own, @rowfeed_own_wait = NULL;
  IF v_time = 0 AND NOT EXISTS (SELECT 1 FROM `rowfeed_feeds` WHERE name = 'blocking' AND state = 'active') THEN
    SIGNAL SQLSTATE '42S02' SET MYSQL_ERRNO = 1146, MESSAGE_TEXT = 'rowfeed: the feed is not ready: wait until feed add has ended';
  END IF;
  SELECT MAX(g.`u`) INTO v_greatest FROM `blocking` g WHERE g.`v` = v_shard;
  IF v_greatest >= UNHEX(CONCAT(LPAD(HEX(v_high), 16, '0'), LPAD(HEX(v_low), 16, '0'))) THEN
    SET v_time = CAST(CONV(LEFT(HEX(v_greatest), 12), 16, 10) AS SIGNED) + 1;
    SET v_high = CAST((v_time << 16) AS SIGNED), v_low = -1;
  END IF;
  SET v_now = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) DIV 1000;
  SET v_hint = GREATEST(COALESCE(p_hint, v_now), 1);
  IF v_hint > v_now + 60000 THEN
    SIGNAL SQLSTATE '22007' SET MYSQL_ERRNO = 1292, MESSAGE_TEXT = 'rowfeed: the hint is more than a minute ahead of the clock: leave it out, or mend the clock that it comes from';
  END IF;
  SET v_bits = SHA2(CONCAT(UUID(), ' ', RAND(), ' ', RAND(), ' ', CONNECTION_ID()), 256);
  SET v_random16 = CONV(LEFT(v_bits, 4), 16, 10);
  SET v_random64 = CAST(CAST(CONV(SUBSTRING(v_bits, 5, 16), 16, 10) AS UNSIGNED) AS SIGNED);
  SET v_first_time = CASE WHEN v_hint > v_time THEN v_hint WHEN CAST((v_low & 9223372036854775807) AS SIGNED) > 9223372036854775807 - 100000000000 THEN v_time + 1 ELSE v_time END;
  SET v_first_high = CASE WHEN v_hint > v_time OR CAST((v_low & 9223372036854775807) AS SIGNED) > 9223372036854775807 - 100000000000 THEN CAST(((CASE WHEN v_hint > v_time THEN v_hint WHEN CAST((v_low & 9223372036854775807) AS SIGNED) > 9223372036854775807 - 100000000000 THEN v_time + 1 ELSE v_time END) << 16) AS SIGNED) + v_random16 ELSE v_high END;
  SET v_low = CASE WHEN v_hint > v_time OR CAST((v_low & 9223372036854775807) AS SIGNED) > 9223372036854775807 - 100000000000 THEN CAST((v_random64 & -4611686018427387905) AS SIGNED) ELSE v_low END;
  IF v_first_time > 281474976710655 THEN
    SIGNAL SQLSTATE '22003' SET MYSQL_ERRNO = 1690, MESSAGE_TEXT = 'rowfeed: there is no ULID above those of the shard: rowfeed check names the row, delete it';
  END IF;
  UPDATE `rowfeed_shards` SET time_ms = v_first_time, ulid_high = v_first_high, ulid_low = v_low + 100000000000, witness = SUBSTRING_INDEX(CONCAT_WS(' ', p_word, NULLIF(witness, '')), ' ', 8) WHERE feed = 'blocking' AND shard = v_shard;
  SELECT v_first_time, v_first_high, v_low, @@GLOBAL.innodb_flush_log_at_trx_commit, @@GLOBAL.log_bin, @@GLOBAL.sync_binlog, @@SESSION.sql_log_bin;
END ;;
DELIMITER ;
/*!50003 SET sql_mode              = @saved_sql_mode */ ;
/*!50003 SET character_set_client  = @saved_cs_client */ ;
/*!50003 SET character_set_results = @saved_cs_results */ ;
/*!50003 SET collation_connection  = @saved_col_connection */ ;
/*!50003 SET @saved_sql_mode       = @@sql_mode */ ;
/*!50003 SET sql_mode              = 'STRICT_ALL_TABLES,ALLOW_INVALID_DATES' */ ;
/*!50003 DROP PROCEDURE IF EXISTS `rowfeed_witness_blocking` */;
/*!50003 SET @saved_cs_client      = @@character_set_client */ ;
/*!50003 SET @saved_cs_results     = @@character_set_results */ ;
/*!50003 SET @saved_col_connection = @@collation_connection */ ;
/*!50003 SET character_set_client  = utf8mb4 */ ;
/*!50003 SET character_set_results = utf8mb4 */ ;
/*!50003 SET collation_connection  = utf8mb4_general_ci */ ;
DELIMITER ;;
CREATE DEFINER=`root`@`127.0.0.1` PROCEDURE `rowfeed_witness_blocking`(IN p_shard bigint)
    READS SQL DATA
BEGIN
  DECLARE EXIT HANDLER FOR 1305 SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'rowfeed: no transaction is open: begin one, lock, insert, commit';
  SAVEPOINT rowfeed_lock;
  RELEASE SAVEPOINT rowfeed_lock;
  SELECT COALESCE((SELECT witness FROM `rowfeed_shards` WHERE feed = 'blocking' AND shard = p_shard), '');
END ;;
DELIMITER ;
/*!50003 SET sql_mode              = @saved_sql_mode */ ;
/*!50003 SET character_set_client  = @saved_cs_client */ ;
/*!50003 SET character_set_results = @saved_cs_results */ ;
/*!50003 SET collation_connection  = @saved_col_connection */ ;
/*!40103 SET TIME_ZONE=@OLD_TIME_ZONE */;

/*!40101 SET SQL_MODE=@OLD_SQL_MODE */;
/*!40014 SET FOREIGN_KEY_CHECKS=@OLD_FOREIGN_KEY_CHECKS */;
/*!40014 SET UNIQUE_CHECKS=@OLD_UNIQUE_CHECKS */;
/*!40101 SET CHARACTER_SET_CLIENT=@OLD_CHARACTER_SET_CLIENT */;
/*!40101 SET CHARACTER_SET_RESULTS=@OLD_CHARACTER_SET_RESULTS */;
/*!40101 SET COLLATION_CONNECTION=@OLD_COLLATION_CONNECTION */;
/*!40111 SET SQL_NOTES=@OLD_SQL_NOTES */;

