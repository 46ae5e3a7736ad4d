import { AppError } from "../../../common/errors.ts";
import { TAGS_PER_TENANT_MAX } from "../../../common/limits.ts";
import { isAtOrBelow, lineOf, movedPath, tagPath } from "./paths.ts";

/** The root has an empty name and no path. */
export interface TagNode {
  readonly name: string;
  readonly nodes: readonly TagNode[];
  readonly path?: string;
  readonly domain?: string;
}

export interface TagMove {
  readonly from: string;
  readonly to: string;
}

/** A tag that is being changed on objects; without `to` it is removed from them. */
export interface MovingTag {
  readonly id: string;
  readonly from: string;
  readonly to?: string;
}

/** Paths by domain. All paths above a path are included. */
type Domains = ReadonlyMap<string, ReadonlySet<string>>;

/** The stored form, by domain: only the paths that have no path below them. */
export type StoredTrees = readonly (readonly [domain: string, leaves: readonly string[]])[];

/** The trees of all domains of a tenant. Immutable: a change returns new trees. */
export class TagTrees {
  readonly #domains: Domains;

  private constructor(domains: Domains) {
    this.#domains = domains;
  }

  static of(stored: StoredTrees): TagTrees {
    return new TagTrees(new Map(stored.map(([domain, leaves]) => [domain, new Set(leaves.flatMap(lineOf))])));
  }

  stored(): StoredTrees {
    return [...this.#domains].map(([domain, paths]) => {
      const above = new Set([...paths].map((path) => path.slice(0, Math.max(0, path.lastIndexOf("/")))));
      return [domain, [...paths].filter((path) => !above.has(path)).sort()];
    });
  }

  /** All paths of a domain, in no order. */
  paths(domain: string): readonly string[] {
    return [...(this.#domains.get(domain) ?? [])];
  }

  has(domain: string, path: string): boolean {
    return this.#domains.get(domain)?.has(path) ?? false;
  }

  /** True if any domain shows the path. */
  shows(path: string): boolean {
    return [...this.#domains.values()].some((paths) => paths.has(path));
  }

  /** Adds these paths and all above them. */
  with(domain: string, paths: readonly string[]): TagTrees {
    return this.#changed(domain, new Set([...this.paths(domain), ...paths.flatMap(lineOf)]));
  }

  /** Removes the path and all below it from this domain. `AppError("not_found")`. */
  without(domain: string, path: string): TagTrees {
    this.#require(domain, path);
    return this.#changed(domain, new Set(this.paths(domain).filter((other) => !isAtOrBelow(other, path))));
  }

  /**
   * Moves the tag and all below it in every domain that shows it: a path is the same tag in all domains.
   * `AppError("not_found")` when this domain does not show it, `AppError("conflict")` when it has the new path.
   */
  moved(domain: string, move: TagMove): TagTrees {
    this.#require(domain, move.from);
    if (move.to === move.from) return this;
    if (isAtOrBelow(move.to, move.from)) throw new AppError("invalid", `The tag ${move.from} cannot lie below itself.`);
    if (this.has(domain, move.to)) throw new AppError("conflict", `There is a tag ${move.to} in ${domain} already.`);
    return [...this.#domains.keys()]
      .filter((each) => this.has(each, move.from))
      .reduce<TagTrees>((trees, each) => trees.#movedIn(each, move), this);
  }

  /** The tree of a domain, or the part below one of its tags; empty when there is none. */
  view(domain: string, below?: string): TagNode {
    const root: TagNode & { readonly nodes: TagNode[] } = { name: "", nodes: [] };
    const known = new Map([[below ?? "", root]]);
    const shown = this.paths(domain).filter((path) => below === undefined || path.startsWith(`${below}/`));
    for (const path of shown.sort()) {
      const slash = path.lastIndexOf("/");
      const node = { name: path.slice(slash + 1), path, domain, nodes: [] };
      known.get(path.slice(0, Math.max(0, slash)))?.nodes.push(node);
      known.set(path, node);
    }
    return root;
  }

  #movedIn(domain: string, move: TagMove): TagTrees {
    const paths = this.paths(domain).flatMap((path) =>
      isAtOrBelow(path, move.from) ? lineOf(tagPath(movedPath(path, move))) : [path],
    );
    return this.#changed(domain, new Set(paths));
  }

  #require(domain: string, path: string): void {
    if (!this.has(domain, path)) throw new AppError("not_found", `There is no tag ${path} in ${domain}.`);
  }

  /** A domain without tags does not exist. */
  #changed(domain: string, paths: ReadonlySet<string>): TagTrees {
    const domains = new Map(this.#domains);
    if (paths.size > 0) domains.set(domain, paths);
    else domains.delete(domain);
    const count = [...domains.values()].reduce((sum, { size }) => sum + size, 0);
    if (count > TAGS_PER_TENANT_MAX)
      throw new AppError("too_large", `A tenant has at most ${TAGS_PER_TENANT_MAX} tags, with those above others.`, {
        details: { limit: "TAGS_PER_TENANT_MAX" },
      });
    return new TagTrees(domains);
  }
}
