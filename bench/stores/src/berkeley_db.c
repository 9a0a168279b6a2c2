/* Berkeley DB 5.3: its interface is structures of functions, which C reads from the header. */
#include <db.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct bdb {
	DB_ENV *env;
	DB *db;
};

static DBT slice(const void *data, size_t bytes)
{
	DBT dbt;
	memset(&dbt, 0, sizeof dbt);
	dbt.data = (void *)data;
	dbt.size = dbt.ulen = (u_int32_t)bytes;
	dbt.flags = DB_DBT_USERMEM;
	return dbt;
}

/* Opens the environment and the table in `folder`; with recovery, so that it may follow a crash. */
int bdb_open(const char *folder, int hash, uint32_t cache_bytes, struct bdb *bdb)
{
	int code;
	bdb->env = NULL;
	bdb->db = NULL;
	if ((code = db_env_create(&bdb->env, 0)) != 0)
		return code;
	DB_ENV *env = bdb->env;
	const u_int32_t flags = DB_CREATE | DB_RECOVER | DB_THREAD | DB_INIT_MPOOL | DB_INIT_LOG | DB_INIT_LOCK | DB_INIT_TXN;
	if ((code = env->set_cachesize(env, 0, cache_bytes, 1)) != 0 ||
	    (code = env->set_lk_detect(env, DB_LOCK_DEFAULT)) != 0 ||
	    (code = env->set_lk_max_locks(env, 50000)) != 0 ||
	    (code = env->set_lk_max_objects(env, 50000)) != 0 ||
	    (code = env->set_lg_bsize(env, 4 << 20)) != 0 ||
	    (code = env->set_lg_max(env, 64 << 20)) != 0 ||
	    (code = env->open(env, folder, flags, 0600)) != 0 ||
	    (code = db_create(&bdb->db, env, 0)) != 0)
		return code;
	const DBTYPE type = hash ? DB_HASH : DB_BTREE;
	return bdb->db->open(bdb->db, NULL, "data.db", NULL, type, DB_CREATE | DB_THREAD | DB_AUTO_COMMIT, 0600);
}

int bdb_begin(struct bdb *bdb, DB_TXN **txn)
{
	return bdb->env->txn_begin(bdb->env, NULL, txn, 0);
}

/* Commits and releases the locks, then makes it durable unless it may be lost: so threads share flushes of the log. */
int bdb_commit(struct bdb *bdb, DB_TXN *txn, int durable)
{
	int code = txn->commit(txn, DB_TXN_NOSYNC);
	return code != 0 || !durable ? code : bdb->env->log_flush(bdb->env, NULL);
}

int bdb_abort(DB_TXN *txn)
{
	return txn->abort(txn);
}

/* 1: there is no such key. A value that will be changed is locked for that at once. */
int bdb_get(struct bdb *bdb, DB_TXN *txn, const void *key_data, size_t key_bytes, void *data, size_t room, size_t *bytes, int change)
{
	DBT key = slice(key_data, key_bytes), value = slice(data, room);
	int code = bdb->db->get(bdb->db, txn, &key, &value, change ? DB_RMW : 0);
	*bytes = value.size;
	return code == DB_NOTFOUND ? 1 : code;
}

int bdb_put(struct bdb *bdb, DB_TXN *txn, const void *key_data, size_t key_bytes, const void *data, size_t bytes)
{
	DBT key = slice(key_data, key_bytes), value = slice(data, bytes);
	return bdb->db->put(bdb->db, txn, &key, &value, 0);
}

/* 1: there is no such key. */
int bdb_delete(struct bdb *bdb, DB_TXN *txn, const void *key_data, size_t key_bytes)
{
	DBT key = slice(key_data, key_bytes);
	int code = bdb->db->del(bdb->db, txn, &key, 0);
	return code == DB_NOTFOUND ? 1 : code;
}

int bdb_is_deadlock(int code)
{
	return code == DB_LOCK_DEADLOCK;
}

/* All changed pages are written. */
int bdb_checkpoint(struct bdb *bdb)
{
	return bdb->env->txn_checkpoint(bdb->env, 0, 0, DB_FORCE);
}

/* Calls `each` for every row, until it returns something else than 0. */
int bdb_each(struct bdb *bdb, int (*each)(void *, const void *, size_t, const void *, size_t), void *context)
{
	DBC *cursor;
	int code = bdb->db->cursor(bdb->db, NULL, &cursor, 0);
	if (code != 0)
		return code;
	unsigned char key_data[64], row[256];
	DBT key = slice(key_data, sizeof key_data), value = slice(row, sizeof row);
	while ((code = cursor->get(cursor, &key, &value, DB_NEXT)) == 0 &&
	       (code = each(context, key_data, key.size, row, value.size)) == 0)
		;
	cursor->close(cursor);
	return code == DB_NOTFOUND ? 0 : code;
}

int bdb_close(struct bdb *bdb)
{
	int first = bdb->db->close(bdb->db, 0);
	int second = bdb->env->txn_checkpoint(bdb->env, 0, 0, 0);
	int third = bdb->env->close(bdb->env, 0);
	return first != 0 ? first : second != 0 ? second : third;
}

const char *bdb_error(int code)
{
	return db_strerror(code);
}
