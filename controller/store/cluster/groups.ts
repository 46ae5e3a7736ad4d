/** In the order in which their first items come; at most so many of one key in a group, those that follow in another. */
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
