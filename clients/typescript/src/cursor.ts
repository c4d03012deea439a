/**
 * What rowfeed's own consumers have to know of a cursor: [generation:]position[@start mark].
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

function parts(cursor: string): { generation: number; position: string; mark: string } {
  const colon = cursor.indexOf(":");
  const [position = "", mark = "0"] = cursor.slice(colon + 1).split("@");
  return { generation: colon < 0 ? 1 : Number(cursor.slice(0, colon)), position, mark };
}

export function atBeginning(cursor: string): boolean {
  if (cursor === "") return true;
  if (!isPlace(cursor)) return false;
  const { position, mark } = parts(cursor);
  return position === "0" && mark === "0";
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
