package health

// DocumentID names the document of the shared board among those that all instances share.
const DocumentID = "health"
