/* The driver that dbt v2 loads for Spark, for tests: the ADBC driver for Spark Connect, at a fixed address.

   dbt v2 loads a library by name and calls AdbcDriverInit, which fills a table of functions (struct AdbcDriver of the ADBC
   specification, https://arrow.apache.org/adbc). This library lets the real driver fill that table and replaces the functions
   that set options: those of dbt's profile are for another driver. Instead of them, the database gets CONNECT_URI.

   CONNECT_DRIVER   the path of the real driver
   CONNECT_URI      sc://127.0.0.1:PORT
   STATEMENT_LOG    a file to which each statement is appended, or unset

   cc -shared -fPIC -o LIBRARY spark_driver.c -ldl */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef uint8_t Status;
enum { STATUS_OK = 0, STATUS_INTERNAL = 9 };

/* Functions that are passed on unchanged are only counted: a slot has the size of a pointer. */
typedef void (*Slot)(void);

struct Driver { /* struct AdbcDriver, up to the last function that is replaced; later versions only append */
    void *private_data;
    void *private_manager;
    Slot release;
    Status (*DatabaseInit)(void *database, void *error);
    Slot DatabaseNew;
    Status (*DatabaseSetOption)(void *database, const char *key, const char *value, void *error);
    Slot DatabaseRelease;
    Slot ConnectionCommit, ConnectionGetInfo, ConnectionGetObjects, ConnectionGetTableSchema, ConnectionGetTableTypes;
    Slot ConnectionInit, ConnectionNew;
    Status (*ConnectionSetOption)(void *connection, const char *key, const char *value, void *error);
    Slot ConnectionReadPartition, ConnectionRelease, ConnectionRollback;
    Slot StatementBind, StatementBindStream, StatementExecuteQuery, StatementExecutePartitions;
    Slot StatementGetParameterSchema, StatementNew, StatementPrepare, StatementRelease;
    Status (*StatementSetOption)(void *statement, const char *key, const char *value, void *error);
    Status (*StatementSetSqlQuery)(void *statement, const char *query, void *error);
};

static struct Driver real; /* the functions of the real driver */

static Status ignore_option(void *object, const char *key, const char *value, void *error) {
    (void)object, (void)key, (void)value, (void)error;
    return STATUS_OK;
}

static Status init_database(void *database, void *error) {
    Status status = real.DatabaseSetOption(database, "uri", getenv("CONNECT_URI"), error);
    return status == STATUS_OK ? real.DatabaseInit(database, error) : status;
}

static Status set_query(void *statement, const char *query, void *error) {
    const char *path = getenv("STATEMENT_LOG");
    FILE *log = path ? fopen(path, "a") : NULL;
    if (log) {
        fprintf(log, "%s\n;;\n", query);
        fclose(log);
    }
    return real.StatementSetSqlQuery(statement, query, error);
}

Status AdbcDriverInit(int version, void *table, void *error) {
    struct Driver *driver = table;
    void *library = dlopen(getenv("CONNECT_DRIVER"), RTLD_NOW | RTLD_LOCAL);
    Status (*init)(int, void *, void *) = NULL;
    if (library) *(void **)&init = dlsym(library, "AdbcDriverInit");
    if (library && !init) *(void **)&init = dlsym(library, "AdbcDriverSparkInit");
    if (!init) {
        fprintf(stderr, "spark_driver.c: %s\n", dlerror());
        return STATUS_INTERNAL;
    }
    Status status = init(version, table, error);
    if (status != STATUS_OK) return status;
    real = *driver;
    driver->DatabaseInit = init_database;
    driver->DatabaseSetOption = ignore_option;
    driver->ConnectionSetOption = ignore_option;
    driver->StatementSetOption = ignore_option;
    driver->StatementSetSqlQuery = set_query;
    return STATUS_OK;
}

/* The names under which dbt and the driver manager look for it, too. */
Status AdbcDriverSparkInit(int version, void *table, void *error) { return AdbcDriverInit(version, table, error); }
Status SparkDriverInit(int version, void *table, void *error) { return AdbcDriverInit(version, table, error); }
