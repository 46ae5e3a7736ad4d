/** True if the tree has a node of one of these kinds. */
export function mentions(tree: unknown, kinds: ReadonlySet<string>): boolean {
  if (typeof tree !== "object" || tree === null) return false;
  if (Array.isArray(tree)) return tree.some((part) => mentions(part, kinds));
  if ("kind" in tree && typeof tree.kind === "string" && kinds.has(tree.kind)) return true;
  return Object.values(tree).some((part) => mentions(part, kinds));
}
