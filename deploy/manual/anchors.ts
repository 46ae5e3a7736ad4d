/** Makes the anchors of one page, by the rule of GitHub: the same links work there and here. */
export class Anchors {
  readonly #used = new Map<string, number>();

  /** Anchor of the next heading. A repeated heading gets `-1`, `-2`, … at its end. */
  of(heading: string): string {
    const name = heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\p{M}_\- ]/gu, "")
      .replaceAll(" ", "-");
    const count = this.#used.get(name) ?? 0;
    this.#used.set(name, count + 1);
    return count === 0 ? name : `${name}-${String(count)}`;
  }
}
