/** `1 record`, `2 records`. Pass `many` if the plural is not the singular with an s. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`;
}
