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

/* Opens the environment and the tree in `folder`; with recovery, so that it may follow a crash. */
int bdb_open(const char *folder, struct bdb *bdb)
{
	int code;
	bdb->env = NULL;
	bdb->db = NULL;
	if ((code = db_env_create(&bdb->env, 0)) != 0)
		return code;
	DB_ENV *env = bdb->env;
	const u_int32_t flags = DB_CREATE | DB_RECOVER | DB_THREAD | DB_INIT_MPOOL | DB_INIT_LOG | DB_INIT_LOCK | DB_INIT_TXN;
	if ((code = env->set_cachesize(env, 0, 128 << 20, 1)) != 0 ||
	    (code = env->set_lk_detect(env, DB_LOCK_DEFAULT)) != 0 ||
	    (code = env->set_lk_max_locks(env, 50000)) != 0 ||
	    (code = env->set_lk_max_objects(env, 50000)) != 0 ||
	    (code = env->set_lg_bsize(env, 4 << 20)) != 0 ||
	    (code = env->set_lg_max(env, 64 << 20)) != 0 ||
	    (code = env->open(env, folder, flags, 0600)) != 0 ||
	    (code = db_create(&bdb->db, env, 0)) != 0)
		return code;
	return bdb->db->open(bdb->db, NULL, "tpcb.db", NULL, DB_BTREE, DB_CREATE | DB_THREAD | DB_AUTO_COMMIT, 0600);
}

/* Puts `count` rows of the same value at keys that lie one behind the other. */
int bdb_load(struct bdb *bdb, const unsigned char *keys, size_t key_bytes, size_t count, const void *row, size_t bytes)
{
	for (size_t at = 0; at < count;) {
		DB_TXN *txn;
		int code = bdb->env->txn_begin(bdb->env, NULL, &txn, DB_TXN_NOSYNC);
		if (code != 0)
			return code;
		for (size_t end = at + 1000; at < end && at < count && code == 0; at++) {
			DBT key = slice(keys + at * key_bytes, key_bytes), value = slice(row, bytes);
			code = bdb->db->put(bdb->db, txn, &key, &value, 0);
		}
		if (code != 0) {
			txn->abort(txn);
			return code;
		}
		if ((code = txn->commit(txn, 0)) != 0)
			return code;
	}
	return bdb->env->txn_checkpoint(bdb->env, 0, 0, DB_FORCE);
}

static int change(struct bdb *bdb, DB_TXN *txn, unsigned char (*keys)[8], int64_t delta, const void *history, size_t bytes)
{
	for (int table = 0; table < 3; table++) {
		unsigned char row[256];
		int64_t balance;
		DBT key = slice(keys[table], 8), value = slice(row, sizeof row);
		int code = bdb->db->get(bdb->db, txn, &key, &value, DB_RMW);
		if (code != 0)
			return code;
		memcpy(&balance, row, sizeof balance);
		balance += delta;
		memcpy(row, &balance, sizeof balance);
		DBT changed = slice(row, value.size);
		if ((code = bdb->db->put(bdb->db, txn, &key, &changed, 0)) != 0)
			return code;
	}
	DBT key = slice(keys[3], 8), value = slice(history, bytes);
	return bdb->db->put(bdb->db, txn, &key, &value, 0);
}

/* One transaction; the keys are those of account, teller, branch and history. Retried when it was chosen to end a deadlock. */
int bdb_transfer(struct bdb *bdb, unsigned char (*keys)[8], int64_t delta, const void *history, size_t bytes)
{
	for (;;) {
		DB_TXN *txn;
		int code = bdb->env->txn_begin(bdb->env, NULL, &txn, 0);
		if (code != 0)
			return code;
		code = change(bdb, txn, keys, delta, history, bytes);
		if (code != 0) {
			txn->abort(txn);
			if (code == DB_LOCK_DEADLOCK)
				continue;
			return code;
		}
		if ((code = txn->commit(txn, DB_TXN_NOSYNC)) != 0)
			return code;
		return bdb->env->log_flush(bdb->env, NULL);
	}
}

int bdb_get(struct bdb *bdb, const unsigned char *key_data, size_t key_bytes, void *row, size_t bytes)
{
	DBT key = slice(key_data, key_bytes), value = slice(row, bytes);
	return bdb->db->get(bdb->db, NULL, &key, &value, 0);
}

/* Calls `each` for every row in order, until it returns something else than 0. */
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
