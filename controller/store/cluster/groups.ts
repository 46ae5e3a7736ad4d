/**
 * Groups items by key, in the order of their first items. A group has at most `most` items; further items of its key
 * begin another group.
 */
export function groupsOf<T, K>(
  items: readonly T[],
  keyOf: (item: T) => K,
  most: number,
): readonly { readonly key: K; readonly items: T[] }[] {
  const groups: { readonly key: K; readonly items: T[] }[] = [];
  const open = new Map<K, T[]>();
  for (const item of items) {
    const key = keyOf(item);
    let group = open.get(key);
    if (group === undefined || group.length >= most) {
      group = [];
      open.set(key, group);
      groups.push({ key, items: group });
    }
    group.push(item);
  }
  return groups;
}
