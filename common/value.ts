/**
 * A value of a class column, as MQL, scripts and the HTTP interface show it: plain JSON.
 * Times are milliseconds since 1970, blobs base64 text, integers beyond 2^53 decimal text.
 */
export type Value = string | number | boolean | null | readonly Value[] | { readonly [key: string]: Value };

/** One object as clients see it: column name to value. `id` and `class` are members like any other. */
export type Row = Record<string, Value>;
