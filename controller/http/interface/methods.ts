import type { Endpoint } from "./endpoint.ts";

/** The methods that a path allows, with HEAD and OPTIONS, sorted; empty if there is nothing at the path. */
export type AllowedMethods = (path: string) => readonly string[];

/** Finds the methods of paths as clients send them, without a query. */
export function allowedMethods(endpoints: readonly Pick<Endpoint, "method" | "path">[]): AllowedMethods {
  const patterns = endpoints.map(({ method, path }) => ({ method, steps: path.split("/") }));
  return (path) => {
    const segments = path.replace(/(?<=.)\/$/, "").split("/");
    const fitting = patterns.filter(({ steps }) => fits(steps, segments));
    const methods = new Set<string>(fitting.map(({ method }) => method));
    if (methods.size === 0) return [];
    if (methods.has("GET")) methods.add("HEAD");
    return [...methods.add("OPTIONS")].sort();
  };
}

/** As the router reads a path: `:name` is one segment, `*` at the end is the rest. */
function fits(steps: readonly string[], segments: readonly string[]): boolean {
  const takesRest = steps.at(-1) === "*";
  if (takesRest ? segments.length < steps.length : segments.length !== steps.length) return false;
  const fixed = takesRest ? steps.slice(0, -1) : steps;
  return fixed.every((step, at) => (step.startsWith(":") ? segments[at] !== "" : step === segments[at]));
}
