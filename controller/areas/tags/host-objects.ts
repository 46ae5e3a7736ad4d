import { Type } from "typebox";
import type { Value } from "../../../common/value.ts";
import { hostFunction, type HostFunction, type HostObject } from "../../scripting/index.ts";
import type { TagService } from "./service.ts";

const text = (name: string, description: string) => ({ name, schema: Type.String({ description }) }) as const;
const list = (name: string, description: string) =>
  ({ name, schema: Type.Array(Type.String(), { description }) }) as const;
const DOMAIN = text("domain", "Name of the tree");
const CREATOR = text("creator", "Taken as it comes: trees belong to the tenant");
const PATH = text("path", "Path of the tag in the tree");
const TO = text("topath", "The full new path");
const MADE = 'tagdir.update("example", "", "os/linux"); ';

/** `tagdir`: trees of tags. */
export function tagsHostObject(tags: TagService): HostObject {
  return {
    name: "tagdir",
    summary: "Trees of tags, and the tags of objects",
    functions: [
      ...changing(tags),
      moving(tags, "move", "Moves a tag with all below it"),
      moving(tags, "rename", "Renames a tag"),
      ...reading(tags),
      ...tagging(tags),
    ],
  };
}

function changing(tags: TagService): readonly HostFunction[] {
  return [
    hostFunction({
      name: "update",
      summary: "Makes a tag, and the tree where it is missing",
      parameters: [DOMAIN, CREATOR, PATH],
      returns: "nothing",
      example: MADE.trim(),
      changes: true,
      call: async ({ principal }, domain, _creator, path) => {
        await tags.add(principal, { domain, path });
        return undefined;
      },
    }),
    hostFunction({
      name: "delete",
      summary: "Removes a tag with all below it",
      parameters: [DOMAIN, CREATOR, PATH],
      returns: "nothing",
      example: `${MADE}tagdir.delete("example", "", "os")`,
      changes: true,
      call: async ({ principal }, domain, _creator, path) => {
        await tags.remove(principal, { domain, path });
        return undefined;
      },
    }),
  ];
}

function moving(tags: TagService, name: string, summary: string): HostFunction {
  return hostFunction({
    name,
    summary,
    parameters: [DOMAIN, CREATOR, PATH, TO],
    returns: "nothing",
    example: `${MADE}tagdir.${name}("example", "", "os/linux", "os/${name}d")`,
    changes: true,
    call: async ({ principal }, domain, _creator, path, to) => {
      await tags.move(principal, { domain, path }, to);
      return undefined;
    },
  });
}

function reading(tags: TagService): readonly HostFunction[] {
  return [
    hostFunction({
      name: "get",
      summary: "The tree of a domain",
      parameters: [DOMAIN, { ...CREATOR, optional: true }],
      returns: "the tree",
      example: 'OUTPUT = tagdir.get("example")',
      call: async ({ principal }, domain) => (await tags.tree(principal, domain)) as unknown as Value,
    }),
    hostFunction({
      name: "nodata",
      summary: "Whether no object bears a tag or one below it",
      parameters: [text("path", "Path with the domain")],
      returns: "boolean",
      example: 'OUTPUT = tagdir.nodata("example/os")',
      call: ({ principal }, path) => tags.isUnused(principal, path),
    }),
  ];
}

function tagging(tags: TagService): readonly HostFunction[] {
  return [
    hostFunction({
      name: "addtags",
      summary: "Gives tags of a domain to objects",
      parameters: [DOMAIN, CREATOR, list("ids", "Ids of the objects"), list("tags", "Paths in the domain")],
      returns: "nothing",
      example: `dfs.write("/tmp/example.txt", "text"); var found = odb.mql("SELECT id FROM /matrix/filesystem LIMIT 1").data;
tagdir.addtags("example", "", [found[0].id], ["os/linux"])`,
      changes: true,
      call: async ({ principal }, domain, _creator, ids, given) => {
        await tags.addTo(principal, domain, { ids, tags: given });
        return undefined;
      },
    }),
    hostFunction({
      name: "deletetags",
      summary: "Takes tags from objects, and none below them",
      parameters: [list("ids", "Ids of the objects"), list("tags", "Paths in their trees")],
      returns: "nothing",
      example: `dfs.write("/tmp/example.txt", "text"); var found = odb.mql("SELECT id FROM /matrix/filesystem LIMIT 1").data;
tagdir.deletetags([found[0].id], ["os/linux"])`,
      changes: true,
      call: async ({ principal }, ids, given) => {
        await tags.takeFrom(principal, undefined, { ids, tags: given });
        return undefined;
      },
    }),
  ];
}
