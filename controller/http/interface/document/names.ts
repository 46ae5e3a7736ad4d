/**
 * The name of an operation in generated clients: the method, then the words of the path; `By` stands before the name of
 * a path parameter. For example, `GET /job/output/:runid/:host` is `getJobOutputByRunidByHost`. Published names do not
 * change, so the rule does not, either.
 */
export function operationId(method: string, path: string): string {
  const segments = path.split("/").filter((segment) => segment !== "");
  const words = segments.map((segment) => {
    if (segment === "*") return "ByPath";
    return segment.startsWith(":") ? `By${capitalized(segment.slice(1))}` : capitalized(segment);
  });
  return method.toLowerCase() + (words.length === 0 ? "Root" : words.join(""));
}

/** `vali_password` to `ValiPassword`. */
function capitalized(text: string): string {
  const parts = text.split(/[^A-Za-z0-9]+/).filter((part) => part !== "");
  return parts.map((part) => part[0]?.toUpperCase() + part.slice(1)).join("");
}

/** The path in the form of OpenAPI: `/job/{path}` for `/job/*`. */
export function documentedPath(path: string): string {
  return path.replace(/:(\w+)/g, "{$1}").replace(/\*$/, "{path}");
}
