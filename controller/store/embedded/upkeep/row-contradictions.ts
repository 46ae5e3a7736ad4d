import { compareBytes, concat } from "../bytes/keys.ts";
import { decodeStored, encodePacked } from "../../format.ts";
import { indexedTerms, isClassTerm } from "../../terms.ts";
import type { CheckedRow } from "../environment/checked-table.ts";
import { mirrorKey, sourceKey, type PackedEdge } from "../entities/edges.ts";
import { decodeEntity } from "../entities/form.ts";
import type { CheckedTableName, IndexTableName, Tables } from "../environment/environment.ts";
import { numberKey, parseEntityKey, recordTermParts, recordTermPrefix } from "../bytes/object-keys.ts";
import type { Packed } from "../records/values.ts";

const PRESENT = encodePacked(1);
const CID_BYTES = 4;

/**
 * Derived rows are committed together with the rows they are derived from. If one row names another that does not
 * exist, something was lost. Returns a message for people, or `undefined`.
 */
export function contradiction(tables: Tables, table: CheckedTableName, row: CheckedRow): string | undefined {
  switch (table) {
    case "objects":
      return ofEntity(tables, row);
    case "records":
      return ofRecord(tables, row);
    case "edgesOut":
      return ofEdge(tables, decodeStored<PackedEdge>(row.value));
    case "edgesIn": {
      const source = sourceKey(decodeStored<PackedEdge>(row.value));
      return tables.edgesOut.doesExist(source)
        ? undefined
        : "its source does not have the edge: `odp scrub` removes it";
    }
    default:
      return undefined;
  }
}

export function indexContradiction(
  tables: Tables,
  table: IndexTableName,
  { key, value }: { readonly key: Uint8Array; readonly value: Uint8Array },
): string | undefined {
  if (compareBytes(value, PRESENT) !== 0) return "it has another value than all rows of this table";
  if (table !== "recordTerms") return undefined;
  const { cid, id } = recordTermParts(key);
  return tables.records.doesExist(concat(cid, id)) ? undefined : "the record that it names is missing";
}

/** Only terms of classes are checked: they suffice to report a lost object once per class instead of once per term. */
export function termContradiction(tables: Tables, term: string, entity: Uint8Array): string | undefined {
  if (!isClassTerm(term) || tables.objects.doesExist(entity)) return undefined;
  const { cid, id } = parseEntityKey(entity);
  return `the object ${cid}:${id} that it names is missing`;
}

function ofEntity(tables: Tables, { key, value }: CheckedRow): string | undefined {
  const { terms, numbers } = decodeEntity(value).indexed();
  for (const term of terms)
    if (!tables.terms.doesExist(term, key)) return `the index of the term ${term} lacks it: \`odp scrub\` adds it`;
  for (const [slot, number] of numbers.entries())
    if (number !== undefined && !tables.numbers.doesExist(numberKey(slot, number, key)))
      return `the index of the number ${slot} lacks it: \`odp scrub\` adds it`;
  return undefined;
}

function ofRecord(tables: Tables, { key, value }: CheckedRow): string | undefined {
  const [, terms] = decodeStored<Packed>(value);
  const { cid } = parseEntityKey(key);
  const id = key.subarray(CID_BYTES);
  const lacking = indexedTerms(terms).find(
    (term) => !tables.recordTerms.doesExist(concat(recordTermPrefix(cid, term), id)),
  );
  return lacking === undefined ? undefined : `the index of the term ${lacking} lacks it`;
}

function ofEdge(tables: Tables, edge: PackedEdge): string | undefined {
  if (!edge[7] || tables.edgesIn.doesExist(mirrorKey(edge))) return undefined;
  return "its target lacks the edge: `odp scrub` adds it";
}
