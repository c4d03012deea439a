/**
 * What rowfeed's own consumers have to know of a cursor:
 * [generation:]position[@start mark][[~head].term].
 * To everybody else a cursor is opaque: store it, and send it back.
 */

/** Whether it is a cursor, and no request such as now and at:TIME. */
export function isPlace(cursor: string): boolean {
  return cursor !== "now" && !cursor.startsWith("at:");
}

/** Positions in their order: numbers by their length first, ULIDs are all of one. */
function above(a: string, b: string): boolean {
  return a.length !== b.length ? a.length > b.length : a > b;
}

/** head is "0" if the cursor leaves it out: the head is then the position or the start mark. */
function parts(cursor: string): { generation: number; position: string; mark: string; head: string } {
  const colon = cursor.indexOf(":");
  const [rest = "", head = "0"] = cursor.slice(colon + 1).split(".")[0]!.split("~");
  const [position = "", mark = "0"] = rest.split("@");
  return { generation: colon < 0 ? 1 : Number(cursor.slice(0, colon)), position, mark, head };
}

export function atBeginning(cursor: string): boolean {
  if (cursor === "") return true;
  if (!isPlace(cursor)) return false;
  const { position, mark, head } = parts(cursor);
  return position === "0" && mark === "0" && head === "0";
}

/** The generation that a cursor is of; 0 of the beginning, and of now and at:TIME. */
export function generationOf(cursor: string): number {
  return !isPlace(cursor) || atBeginning(cursor) ? 0 : parts(cursor).generation;
}

/** Whether a pass from the beginning is under way: its start mark is not reached yet. */
export function inPass(cursor: string): boolean {
  if (!isPlace(cursor)) return false;
  const { position, mark } = parts(cursor);
  return atBeginning(cursor) || above(mark, position);
}
