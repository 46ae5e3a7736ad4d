import { ADMINISTRATION_CALLS } from "./calls/administration.ts";
import { DATA_CALLS } from "./calls/data.ts";
import { HOST_CALLS } from "./calls/hosts.ts";
import type { ExampleCalls } from "./calls/types.ts";

/**
 * One call of each operation, in an order in which every call finds what it needs. `test/openapi/examples.test.ts`
 * makes them.
 */
export const EXAMPLE_CALLS: ExampleCalls = {
  "POST /host": HOST_CALLS["POST /host"] ?? {},
  ...DATA_CALLS,
  ...HOST_CALLS,
  ...ADMINISTRATION_CALLS,
};

/** Members of the example call of an endpoint; none if it has no example. */
export function exampleInput({ method, path }: { readonly method: string; readonly path: string }) {
  return EXAMPLE_CALLS[`${method} ${path}`] ?? {};
}
