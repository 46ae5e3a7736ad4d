/**
 * A value of a class column in MQL, scripts and the HTTP interface: plain JSON. Times are milliseconds since 1970,
 * blobs are base64 text, integers beyond 2^53 are decimal text.
 */
export type Value = string | number | boolean | null | readonly Value[] | { readonly [key: string]: Value };

/** One object as clients see it: column name to value. `id` and `class` are members like any other. */
export type Row = Record<string, Value>;
