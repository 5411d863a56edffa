"""Run by alembic, within the transaction and the lock that `schema.migrate` holds."""

from alembic import context

from refill.store.indexes import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    transactional_ddl=True,
)
with context.begin_transaction():
    context.run_migrations()
