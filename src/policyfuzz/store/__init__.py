"""Writing and reading campaign files: schema, records, reader, writer. Imports nothing of the search."""
