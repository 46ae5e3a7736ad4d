/** Members of an example call by method and path. */
export type ExampleCalls = Readonly<Record<string, Readonly<Record<string, unknown>>>>;
