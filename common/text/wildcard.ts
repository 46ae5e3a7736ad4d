/** Compiles a pattern in which `*` stands for any text. Each part of the pattern takes time linear in the text. */
export function wildcard(pattern: string): (text: string) => boolean {
  const parts = pattern.split("*");
  const first = parts[0] ?? "";
  const last = parts.at(-1) ?? "";
  if (parts.length === 1) return (text) => text === pattern;
  const middle = parts.slice(1, -1).filter((part) => part !== "");
  return (text) => {
    if (text.length < first.length + last.length || !text.startsWith(first) || !text.endsWith(last)) return false;
    let at = first.length;
    for (const part of middle) {
      const found = text.indexOf(part, at);
      if (found === -1) return false;
      at = found + part.length;
    }
    return at <= text.length - last.length;
  };
}
