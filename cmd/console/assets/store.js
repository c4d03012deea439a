// Stores settings in the browser. Without access to its storage nothing is stored.
export const keep = (name, value) => { try { localStorage.setItem(`rowfeed-${name}`, value); } catch { /* no storage */ } };
export const kept = (name) => { try { return localStorage.getItem(`rowfeed-${name}`); } catch { return null; } };
