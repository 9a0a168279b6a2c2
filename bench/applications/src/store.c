/* Berkeley DB 5.3: its interface is structures of functions, which C reads from the header. */
#define _GNU_SOURCE
#include <db.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

struct store {
	DB_ENV *env;
	DB *db;
};

static DBT slice(void *data, size_t bytes)
{
	DBT dbt;
	memset(&dbt, 0, sizeof dbt);
	dbt.data = data;
	dbt.size = dbt.ulen = (u_int32_t)bytes;
	dbt.flags = DB_DBT_USERMEM;
	return dbt;
}

/*
 * DB_DIRECT_DB, which Debian's library is built without: the pages of the database are read and written past the page
 * cache. Every descriptor of it has a second one with O_DIRECT, and each thread a page of aligned memory to copy through.
 */
#define PAGE 4096
#define DESCRIPTORS 1024
static int direct_of[DESCRIPTORS]; /* 0: none */
static _Thread_local _Alignas(PAGE) unsigned char aligned[PAGE];

static int ends_with(const char *text, const char *end)
{
	size_t length = strlen(text), tail = strlen(end);
	return length >= tail && strcmp(text + length - tail, end) == 0;
}

static int open_direct(const char *path, int flags, ...)
{
	/* Berkeley DB always passes a mode. */
	va_list list;
	va_start(list, flags);
	int mode = va_arg(list, int), file = open(path, flags, mode);
	va_end(list);
	if (file >= 0 && file < DESCRIPTORS && ends_with(path, "/store.db")) {
		int direct = open(path, O_RDWR | O_DIRECT | O_CLOEXEC);
		if (direct < 0) {
			int code = errno;
			close(file);
			errno = code;
			return -1;
		}
		direct_of[file] = direct;
	}
	return file;
}

static int close_direct(int file)
{
	if (file >= 0 && file < DESCRIPTORS && direct_of[file] != 0) {
		close(direct_of[file]);
		direct_of[file] = 0;
	}
	return close(file);
}

/* The descriptor for a page; -1: it is not one of the database. */
static int direct_for(int file, size_t bytes, off_t offset)
{
	int page = bytes == PAGE && offset % PAGE == 0 && file < DESCRIPTORS;
	return page && direct_of[file] != 0 ? direct_of[file] : -1;
}

static ssize_t pread_direct(int file, void *into, size_t bytes, off_t offset)
{
	int direct = direct_for(file, bytes, offset);
	if (direct < 0)
		return pread(file, into, bytes, offset);
	ssize_t done = pread(direct, aligned, bytes, offset);
	if (done > 0)
		memcpy(into, aligned, (size_t)done);
	return done;
}

static ssize_t pwrite_direct(int file, const void *from, size_t bytes, off_t offset)
{
	int direct = direct_for(file, bytes, offset);
	if (direct < 0)
		return pwrite(file, from, bytes, offset);
	memcpy(aligned, from, bytes);
	return pwrite(direct, aligned, bytes, offset);
}

/* Opens the environment and the database in `folder`. Its regions are private memory: only database and log are files. */
int store_open(const char *folder, int hash, uint32_t cache_bytes, struct store *store)
{
	int code;
	store->env = NULL;
	store->db = NULL;
	if ((code = db_env_set_func_open(open_direct)) != 0 || (code = db_env_set_func_close(close_direct)) != 0 ||
	    (code = db_env_set_func_pread(pread_direct)) != 0 || (code = db_env_set_func_pwrite(pwrite_direct)) != 0 ||
	    (code = db_env_create(&store->env, 0)) != 0)
		return code;
	DB_ENV *env = store->env;
	const u_int32_t flags = DB_CREATE | DB_PRIVATE | DB_RECOVER | DB_INIT_MPOOL | DB_INIT_LOG | DB_INIT_LOCK | DB_INIT_TXN;
	if ((code = env->set_cachesize(env, 0, cache_bytes, 1)) != 0 ||
	    (code = env->set_lk_max_locks(env, 50000)) != 0 ||
	    (code = env->set_lk_max_objects(env, 50000)) != 0 ||
	    (code = env->open(env, folder, flags, 0600)) != 0 ||
	    (code = db_create(&store->db, env, 0)) != 0 ||
	    (code = store->db->set_pagesize(store->db, PAGE)) != 0)
		return code;
	const DBTYPE type = hash ? DB_HASH : DB_BTREE;
	return store->db->open(store->db, NULL, "store.db", NULL, type, DB_CREATE | DB_AUTO_COMMIT, 0600);
}

/* Puts `count` records, whose keys and values lie one behind the other, in one transaction that is not forced. */
int store_put(struct store *store, unsigned char *keys, size_t key_bytes, unsigned char *values, size_t bytes, size_t count)
{
	DB_TXN *txn;
	int code = store->env->txn_begin(store->env, NULL, &txn, DB_TXN_NOSYNC);
	if (code != 0)
		return code;
	for (size_t at = 0; at < count && code == 0; at++) {
		DBT key = slice(keys + at * key_bytes, key_bytes), value = slice(values + at * bytes, bytes);
		code = store->db->put(store->db, txn, &key, &value, 0);
	}
	if (code != 0) {
		txn->abort(txn);
		return code;
	}
	return txn->commit(txn, 0);
}

/* Calls `change` with the value of a key and puts it back: one transaction, durable when it returns. */
int store_update(struct store *store, unsigned char *key_data, size_t key_bytes, unsigned char *record, size_t bytes,
                 int (*change)(void *, unsigned char *), void *context)
{
	DB_TXN *txn;
	int code = store->env->txn_begin(store->env, NULL, &txn, DB_TXN_SYNC);
	if (code != 0)
		return code;
	DBT key = slice(key_data, key_bytes), value = slice(record, bytes);
	if ((code = store->db->get(store->db, txn, &key, &value, DB_RMW)) == 0 && (code = change(context, record)) == 0)
		code = store->db->put(store->db, txn, &key, &value, 0);
	if (code != 0) {
		txn->abort(txn);
		return code;
	}
	return txn->commit(txn, 0);
}

int store_get(struct store *store, unsigned char *key_data, size_t key_bytes, unsigned char *record, size_t bytes)
{
	DBT key = slice(key_data, key_bytes), value = slice(record, bytes);
	return store->db->get(store->db, NULL, &key, &value, 0);
}

/* All changed pages are written; the log before that is not needed and removed. */
int store_checkpoint(struct store *store)
{
	int code = store->env->txn_checkpoint(store->env, 0, 0, DB_FORCE);
	return code != 0 ? code : store->env->log_archive(store->env, NULL, DB_ARCH_REMOVE);
}

int store_close(struct store *store)
{
	int first = store->db != NULL ? store->db->close(store->db, 0) : 0;
	int second = store->env != NULL ? store->env->close(store->env, 0) : 0;
	return first != 0 ? first : second;
}

const char *store_error(int code)
{
	return db_strerror(code);
}
